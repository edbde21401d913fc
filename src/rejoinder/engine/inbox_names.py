"""What the folders are called in which rows that a program inserts lie until an epoch reads them."""

from __future__ import annotations

import hashlib


def inbox_name(source: str) -> str:
    """The name of the folder of a source. It is hashed: the name of a source may hold anything.

    >>> inbox_name("Orders") == inbox_name("orders")
    True
    """
    return hashlib.blake2b(source.lower().encode(), digest_size=8).hexdigest()
