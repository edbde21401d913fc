"""The names of inbox folders, in which inserted rows are stored until an epoch reads them."""

from __future__ import annotations

import hashlib


def inbox_name(source: str, identity: str) -> str:
    """Return the name of the inbox folder of a source. It is a hash, since a source name may have any characters.

    `identity` is that of the source in the manifest (`attached`). A source that is dropped and created again has
    another identity, so it never gets pending rows of the earlier source.

    >>> inbox_name("Orders", "a1") == inbox_name("orders", "a1") != inbox_name("orders", "b2")
    True
    """
    return hashlib.blake2b(f"{identity}/{source.lower()}".encode(), digest_size=8).hexdigest()
