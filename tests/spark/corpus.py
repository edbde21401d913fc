"""The corpus of expressions, read from `expressions.yaml`."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

_CORPUS: dict[str, Any] = yaml.safe_load((Path(__file__).parent / "expressions.yaml").read_text(encoding="utf-8"))
_PLACE = re.compile(r"\{([a-z_]+)\}")


def expanded(templates: Iterable[str]) -> list[str]:
    """Fill in every word for every `{name}`; a name that comes twice takes its words independently."""
    return [
        _filled(template, words)
        for template in templates
        for words in itertools.product(*(_CORPUS["words"][name] for name in _PLACE.findall(template)))
    ]


def _filled(template: str, words: Iterable[str]) -> str:
    remaining = iter(words)
    return _PLACE.sub(lambda _: next(remaining), template)


LOUDER = expanded(_CORPUS["louder"])
REFUSED = expanded(text for texts in _CORPUS["refused"].values() for text in texts)
WRONG = expanded(_CORPUS["wrong"])
_EXCEPTED = {*LOUDER, *REFUSED}
EQUAL = {
    topic: [text for text in expanded(templates) if text not in _EXCEPTED]
    for topic, templates in _CORPUS["equal"].items()
}
