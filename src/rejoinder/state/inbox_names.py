"""What the folders are called in which rows that a program inserts lie until an epoch reads them."""

from __future__ import annotations

import hashlib


def inbox_name(source: str, identity: str) -> str:
    """The name of the folder of a source. It is hashed: the name of a source may hold anything.

    `identity` is that of the source in the manifest (`attached`). A source that is dropped and created again has
    another one, so rows that waited for the first are never rows of the second, whoever defines it.

    >>> inbox_name("Orders", "a1") == inbox_name("orders", "a1") != inbox_name("orders", "b2")
    True
    """
    return hashlib.blake2b(f"{identity}/{source.lower()}".encode(), digest_size=8).hexdigest()
