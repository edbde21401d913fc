"""Secret options of sources and sinks: references to the environment, never stored or shown in plain text.

A secret option is written as `password 'env:PGPASSWORD'`. Definitions, the manifest, EXPLAIN, SHOW and messages contain
the reference. The value is looked up where it is used, and redacted from messages of other libraries.

>>> redacted({"user": "ada", "password": "env:PGPASSWORD", "kafka.sasl.jaas.config": "… password=\\"x\\";"})
{'user': 'ada', 'password': 'env:PGPASSWORD', 'kafka.sasl.jaas.config': '***'}
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from urllib.parse import unquote

from rejoinder.errors import InvalidSql, MissingInput

REFERENCE = "env:"
HIDDEN = "***"
_NOT_SHOWN = "(not shown: the text contains a secret)"
_SECRET_WORDS = (
    r"password|passwd|pwd|passphrase|secret|token|credential|jaas[._-]?config|user[._-]?info|authorization|bearer"
    r"|private[._-]?key|keystore[._-]?key|access[._-]?key|account[._-]?key|shared[._-]?key|api[._-]?key|sas[._-]?key"
    r"|encryption[._-]?key|assertion|signature"
)
_PLAIN_NAME = re.compile(
    r"(url|uri|location|endpoint|type|path|class|name|credentials\.source|[._](?:seconds|ms|buffer))$", re.IGNORECASE
)
_SECRET_NAME = re.compile(rf"{_SECRET_WORDS}|(?:^|[._-])(?:auth|pass|jwt|sig)$", re.IGNORECASE)
# `/token=a/` is a folder of a partitioned table, `?token=a` is not.
_IN_VALUE = re.compile(
    rf"(?P<before>(?<![/\w.-])[\w.-]*(?:{_SECRET_WORDS})[\w.-]{{0,64}}\s*=\s*)(?P<secret>\"[^\"]*\"|[^&;\s'\"]+)",
    re.IGNORECASE,
)
# Signed URLs: S3 and GCS (`X-…-Signature`), Azure (`sig`), CloudFront (`Signature`, `Key-Pair-Id`), and others.
_IN_SIGNED = re.compile(
    r"(?P<before>[?&;#](?:[\w-]*signature|sig|key-pair-id|auth|key|pass|jwt|code|session(?:[_-]?(?:id|key))?)=)"
    r"(?P<secret>[^&;\s'\"]+)",
    re.IGNORECASE,
)
# `Authorization: Basic …` as in an HTTP header; `user:password@host:9092` in a list of hosts.
_IN_HEADER = re.compile(r"(?P<before>authorization\s*:\s*(?:\w+\s+)?)(?P<secret>[^\s'\",;]+)", re.IGNORECASE)
_IN_HOSTS = re.compile(r"(?P<before>(?:^|(?<=[\s,'\"]))[^\s,:@/'\"]+:)(?P<secret>[^\s,:@/'\"]+)(?=@[\w.-]+:\d+)")
# The host of hdfs://name:9000/a@b has a port. A bucket has none, and a secret key of AWS may contain a slash.
_IN_ADDRESS = re.compile(
    r"(?P<before>://[^/\s:@]*:|:(?:thin|oci):[^/\s:@]+/)(?P<secret>[^/\s@]+)(?=@)"
    r"|(?P<bucket>\b(?:s3[an]?|gs|oss|cosn?)://[^/\s:@]*:)(?P<key>[^\s@'\"]+)(?=@)"
    r"|(?P<scheme>\b(?:https?|s3[an]?|gs|ftp|sftp)://)(?P<user>[^/\s:@?#'\"]+)(?=@)",
    re.IGNORECASE,
)
_IN_PEM = re.compile(r"(?P<before>-----BEGIN [A-Z ]*PRIVATE KEY-----)(?P<secret>.*?)(?=-----END|'|$)", re.DOTALL)
_IN_VALUES = (_IN_VALUE, _IN_SIGNED, _IN_ADDRESS, _IN_HEADER, _IN_HOSTS, _IN_PEM)
_ENCODED = re.compile(r"(?<![^\s'\"])[^\s'\"]*%[0-9A-Fa-f]{2}[^\s'\"]*")
_PLACES = ("path", "sourcearchivedir")
_IN_TEXT = re.compile(
    rf"(?P<before>[\w.]*(?:{_SECRET_WORDS})[\w.]*[`\"]?\s*=?\s*)'(?P<secret>(?:[^'\\]|\\.|'')*)(?:'|$)", re.IGNORECASE
)

# Tokens by which an option with its value is distinguished from a literal of an expression. No alternative backtracks,
# so a text is scanned in linear time.
_TOKENS = re.compile(
    r"--[^\n]*|/\*(?:.*?\*/|.*)|(?P<literal>'(?:[^'\\]|\\.|'')*(?:'|\\?\Z))"
    r"|(?P<name>[\w.-]+|`[^`]*`|\"[^\"]*\")|(?P<equals>=)|(?P<end>;)|(?P<other>\S)",
    re.DOTALL,
)


def is_secret(name: str, value: str = "") -> bool:
    """Return whether an option contains a secret, by its name and by parts of its value.

    >>> is_secret("password"), is_secret("url", "jdbc:postgresql://db/shop?user=ada&password=x"), is_secret("path")
    (True, True, False)
    >>> is_secret("path", "s3://KEY:SECRET@bucket/x"), is_secret("path", "s3://bucket/token=7/x")
    (True, False)
    """
    has_secret_name = _SECRET_NAME.search(name) and not _PLAIN_NAME.search(name)
    texts = (value, unquote(value)) if "%" in value else (value,)
    return bool(has_secret_name or any(pattern.search(text) for pattern in _IN_VALUES for text in texts))


def is_reference(value: str) -> bool:
    """Whether a value is a reference, `env:NAME`."""
    return value.startswith(REFERENCE)


def redacted(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options as they may be shown: references unchanged, secrets in plain text hidden."""
    return {
        name: HIDDEN if is_secret(name, value) and not is_reference(value) else value for name, value in options.items()
    }


def redacted_text(text: str) -> str:
    """Return SQL text with the values of secret options hidden, including a value without closing quote.

    >>> redacted_text("OPTIONS (user 'ada', password 'x''y', token = 'env:T')")
    "OPTIONS (user 'ada', password '***', token = 'env:T')"
    """

    def hide(match: re.Match[str]) -> str:
        secret = match["secret"]
        return match[0] if is_reference(secret) else f"{match['before']}'{HIDDEN}'"

    text = _IN_TEXT.sub(hide, text)
    for pattern in _IN_VALUES:
        text = pattern.sub(_hide_part, text)
    return _ENCODED.sub(lambda match: HIDDEN if is_secret("", match[0]) else match[0], text)


def refuse_broken_secret(text: str) -> None:
    """Raise `InvalidSql` if the value of a secret option contains a quote that is not escaped.

    The rest of the secret would be parsed as names, and shown in errors. Options precede the query of a statement, or
    follow OPTIONS. After any broken value there, values and names cannot be distinguished, so no secret may follow it.
    Literals of a query are not options.
    """
    last = max((match.end() for match in _SECRET_NAME.finditer(text)), default=0)
    name, has_equals, is_query = "", False, False
    for token in _TOKENS.finditer(text) if last else ():
        match token.lastgroup:
            case "literal":
                follows = text[token.end() : token.end() + 1]
                is_broken = follows != "" and not follows.isspace() and follows not in ",;)"
                is_secret_value = bool(_SECRET_NAME.search(name)) and not (is_query and has_equals)
                is_before_secret = not is_query and follows != "=" and token.end() < last  # `'key'='value'` is fine
                if is_broken and (is_secret_value or is_before_secret):
                    raise InvalidSql(
                        "the value of a secret option contains a quote",
                        detail=f"line {text.count(chr(10), 0, token.start()) + 1}",
                        hint="store the secret in an environment variable, and write 'env:NAME' as the value",
                    )
                name, has_equals = "" if is_query else token[0], False
            case "name":
                name, has_equals = token[0], False
                is_query = name.upper() in ("SELECT", "VALUES") or (is_query and name.upper() != "OPTIONS")
            case "equals":
                has_equals = True
            case "end":
                name, is_query = "", False
            case "other":
                name = ""


def shown_line(text: str, number: int) -> str:
    """Return a line of a text, counted from 1, with secrets hidden, also if the option name is on the line before.

    >>> shown_line("OPTIONS (password\\n 'x', user 'ada')", 2)
    "'***', user 'ada')"
    """
    safe = redacted_text(text).splitlines()
    if len(safe) != len(text.splitlines()):
        return _NOT_SHOWN
    return safe[number - 1].strip() if number <= len(safe) else ""


def shown_context(text: str, before: str, marked: str, after: str) -> str:
    """Return the context of a position in a text; none if the text contains a secret, which an excerpt could reveal."""
    return f"… {before}>>{marked}<<{after}" if redacted_text(text) == text else _NOT_SHOWN


def _hide_part(match: re.Match[str]) -> str:
    parts = match.groupdict()
    return f"{parts['before'] or parts.get('bucket') or parts.get('scheme') or ''}{HIDDEN}"


def refuse_clear(owner: str, options: Mapping[str, str]) -> None:
    """Raise `InvalidSql` for a secret in plain text: definitions are stored with the state.

    `owner` is the source or sink, for the message.
    """
    for name, value in options.items():
        if is_secret(name, value) and not is_reference(value):
            variable = re.sub(r"\W+", "_", name).upper()
            raise InvalidSql(
                f"option `{name}` of {owner} contains a secret in plain text",
                detail="definitions are stored with the state, and everyone who can read it sees them",
                hint="write the path without credentials, and pass those to Spark (spark.hadoop.fs.s3a.…) or set the "
                "environment variables of the provider (AWS_ACCESS_KEY_ID, …)"
                if name.lower() in _PLACES
                else f"store it in an environment variable, and write {name} 'env:{variable}'",
            )


def resolved(owner: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options with every reference replaced by its value. Raises `MissingInput` if a variable is not set."""
    result = {}
    for name, value in options.items():
        if is_reference(value):
            variable = value.removeprefix(REFERENCE)
            if variable not in os.environ:
                raise MissingInput(
                    f"environment variable `{variable}` is not set",
                    detail=f"option `{name}` of {owner} is '{value}'",
                    hint="set it in the environment of the flow",
                )
            value = os.environ[variable]
        result[name] = value
    return result


def scrubbed(text: str, options: Mapping[str, str]) -> str:
    """Return a message of another library without the secrets that `options` refer to."""
    for value in options.values():
        secret = os.environ.get(value.removeprefix(REFERENCE), "") if is_reference(value) else ""
        if secret:
            text = text.replace(secret, HIDDEN)
    return redacted_text(text)
