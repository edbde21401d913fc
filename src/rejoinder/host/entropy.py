"""Random names: the only source of randomness in the engine, so that a simulation can replay it from a seed."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Source = Callable[[int], bytes]

_source: Source = secrets.token_bytes


def token(size: int) -> str:
    """Return `size` random bytes as hexadecimal digits, for a unique name."""
    return _source(size).hex()


@contextmanager
def drawn_from(source: Source) -> Iterator[None]:
    """Take random bytes from `source` instead of the operating system, in the whole process. For simulations only.

    >>> with drawn_from(lambda size: bytes(range(size))):
    ...     token(4)
    '00010203'
    """
    global _source
    before, _source = _source, source
    try:
        yield
    finally:
        _source = before
