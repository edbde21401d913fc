"""Canonical text of a tree: an order of expressions that does not depend on which input a column belongs to.

Arrangements are shared between views if their keys are in the same order. A digest gives no such order, since it
changes with the number of the input; this text only has another prefix in all columns.
"""

from __future__ import annotations

from functools import lru_cache

from rejoinder.ir.nodes import Call, Column, Literal, Node, Variable, walk


@lru_cache(maxsize=4096)
def canonical_text(root: Node) -> str:
    """The text of a tree: functions with their arguments in brackets. Linear in its length, without recursion.

    >>> import pyarrow as pa
    >>> canonical_text(Column("a", pa.int64()))
    'a'
    """
    texts: dict[bytes, str] = {}
    for node in walk(root):
        match node:
            case Column() | Variable():
                text = node.name
            case Literal():
                text = repr(node.value)
            case _:
                name = type(node).__name__
                if isinstance(node, Call):
                    name = node.operation.name or node.operation.template
                text = f"{name}({', '.join(texts[part.digest] for part in node.parts)})"
        texts[node.digest] = text
    return texts[root.digest]
