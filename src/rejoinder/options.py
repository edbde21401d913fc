"""Secret options of sources and sinks: references to the environment, never stored or shown in clear.

A secret option is written as `password 'env:PGPASSWORD'`. Definitions, the manifest, EXPLAIN, SHOW and messages hold
the reference; the value is looked up where it is used, and taken out of whatever a foreign library says.

>>> redacted({"user": "ada", "password": "env:PGPASSWORD", "kafka.sasl.jaas.config": "… password=\\"x\\";"})
{'user': 'ada', 'password': 'env:PGPASSWORD', 'kafka.sasl.jaas.config': '***'}
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from rejoinder.errors import InvalidSql, MissingInput

REFERENCE = "env:"
HIDDEN = "***"
_SECRET_WORDS = (
    r"password|passwd|pwd|passphrase|secret|token|credential|jaas\.config"
    r"|private\.?key|keystore\.?key|access\.?key|api\.?key|sas\.?key"
)
_PLAIN_NAME = re.compile(r"(url|uri|location|endpoint|type|path|class|name)$", re.IGNORECASE)
_SECRET_NAME = re.compile(_SECRET_WORDS, re.IGNORECASE)
_IN_VALUE = re.compile(rf"(?P<before>(?:{_SECRET_WORDS})\s*=\s*)(?P<secret>\"[^\"]*\"|[^&;\s'\"]+)", re.IGNORECASE)
_IN_ADDRESS = re.compile(r"(?P<before>://[^/\s:@]+:|:(?:thin|oci):[^/\s:@]+/)(?P<secret>[^/\s@]+)(?=@)")
_IN_PEM = re.compile(r"(?P<before>-----BEGIN [A-Z ]*PRIVATE KEY-----)(?P<secret>.*?)(?=-----END|'|$)", re.DOTALL)
_IN_VALUES = (_IN_VALUE, _IN_ADDRESS, _IN_PEM)
_IN_TEXT = re.compile(
    rf"(?P<before>[\w.]*(?:{_SECRET_WORDS})[\w.]*[`\"]?\s*=?\s*)'(?P<secret>(?:[^'\\]|\\.|'')*)(?:'|$)", re.IGNORECASE
)


def is_secret(name: str, value: str = "") -> bool:
    """Whether an option holds something to hide: by its name, or because a part of its value does.

    >>> is_secret("password"), is_secret("url", "jdbc:postgresql://db/shop?user=ada&password=x"), is_secret("path")
    (True, True, False)
    """
    named = _SECRET_NAME.search(name) and not _PLAIN_NAME.search(name)
    return bool(named or any(pattern.search(value) for pattern in _IN_VALUES))


def is_reference(value: str) -> bool:
    """Whether a value says where to look, `env:NAME`."""
    return value.startswith(REFERENCE)


def redacted(options: Mapping[str, str]) -> dict[str, str]:
    """The options as they may be shown: references as they are, secrets in clear hidden."""
    return {
        name: HIDDEN if is_secret(name, value) and not is_reference(value) else value for name, value in options.items()
    }


def redacted_text(text: str) -> str:
    """A text of statements as it may be shown: the values of secret options hidden, also one that is not closed.

    >>> redacted_text("OPTIONS (user 'ada', password 'x''y', token = 'env:T')")
    "OPTIONS (user 'ada', password '***', token = 'env:T')"
    """

    def hide(found: re.Match[str]) -> str:
        secret = found["secret"]
        return found[0] if is_reference(secret) else f"{found['before']}'{HIDDEN}'"

    text = _IN_TEXT.sub(hide, text)
    for pattern in _IN_VALUES:
        text = pattern.sub(rf"\g<before>{HIDDEN}", text)
    return text


def refuse_clear(owner: str, options: Mapping[str, str]) -> None:
    """Refuse a secret in clear: definitions are stored with the state. `owner` says whose option it is."""
    for name, value in options.items():
        if is_secret(name, value) and not is_reference(value):
            variable = re.sub(r"\W+", "_", name).upper()
            raise InvalidSql(
                f"option `{name}` of {owner} holds a secret in clear",
                detail="definitions are stored with the state and shown to whoever may read it",
                hint=f"put it into an environment variable, and write {name} 'env:{variable}'",
            )


def resolved(owner: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options with every reference replaced by what it stands for. Raises `MissingInput` if that is not set."""
    result = {}
    for name, value in options.items():
        if is_reference(value):
            variable = value.removeprefix(REFERENCE)
            if variable not in os.environ:
                raise MissingInput(
                    f"environment variable `{variable}` is not set",
                    detail=f"option `{name}` of {owner} is '{value}'",
                    hint="set it where the flow is run",
                )
            value = os.environ[variable]
        result[name] = value
    return result


def scrubbed(text: str, options: Mapping[str, str]) -> str:
    """A message of a foreign library without the values that references in `options` stand for."""
    for value in options.values():
        secret = os.environ.get(value.removeprefix(REFERENCE), "") if is_reference(value) else ""
        if secret:
            text = text.replace(secret, HIDDEN)
    return redacted_text(text)
