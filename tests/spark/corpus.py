"""The corpus of expressions, read from the files `*expressions.yaml`."""

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


_FILES = tuple(_read(name) for name in ("expressions.yaml", "function_expressions.yaml", "format_expressions.yaml"))
_WORDS = {name: words for file in _FILES for name, words in file.get("words", {}).items()}
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


def _listed(kind: str) -> list[str]:
    return expanded(text for file in _FILES for text in file.get(kind, ()))


LOUDER = _listed("louder")
CLOSE = _listed("close")
REFUSED = expanded(text for file in _FILES for texts in file.get("refused", {}).values() for text in texts)
WRONG = _listed("wrong")
_EXCEPTED = {*LOUDER, *REFUSED}
EQUAL = {
    topic: [text for text in expanded(templates) if text not in _EXCEPTED]
    for file in _FILES
    for topic, templates in file.get("equal", {}).items()
}
