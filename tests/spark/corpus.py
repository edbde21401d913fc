"""The corpus of expressions, read from `expressions.yaml` and `function_expressions.yaml`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml


def _read(name: str) -> dict[str, Any]:
    corpus: dict[str, Any] = yaml.safe_load((Path(__file__).parent / name).read_text(encoding="utf-8"))
    return corpus


_OPERATORS, _FUNCTIONS = _read("expressions.yaml"), _read("function_expressions.yaml")
_WORDS = _OPERATORS["words"] | _FUNCTIONS["words"]
_PLACE = re.compile(r"\{([a-z_]+)\}")


def expanded(templates: Iterable[str]) -> list[str]:
    """Fill in every word for every `{name}`; a name that comes twice takes its words independently."""
    return [
        _filled(template, words)
        for template in templates
        for words in itertools.product(*(_WORDS[name] for name in _PLACE.findall(template)))
    ]


def _filled(template: str, words: Iterable[str]) -> str:
    remaining = iter(words)
    return _PLACE.sub(lambda _: next(remaining), template)


LOUDER = expanded(_OPERATORS["louder"] + _FUNCTIONS["louder"])
CLOSE = expanded(_FUNCTIONS["close"])
_REASONS = (*_OPERATORS["refused"].values(), *_FUNCTIONS["refused"].values())
REFUSED = expanded(text for texts in _REASONS for text in texts)
WRONG = expanded(_OPERATORS["wrong"] + _FUNCTIONS["wrong"])
_EXCEPTED = {*LOUDER, *REFUSED}
EQUAL = {
    topic: [text for text in expanded(templates) if text not in _EXCEPTED]
    for topic, templates in (_OPERATORS["equal"] | _FUNCTIONS["equal"]).items()
}
