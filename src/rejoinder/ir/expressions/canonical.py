"""Canonical text of a tree: an order of expressions that does not depend on the input that a column belongs to.

Views share an arrangement if their keys are in the same order. A digest gives no such order, since it changes with the
number of the input. In this text, only the prefix of all columns changes.
"""

from __future__ import annotations

from functools import lru_cache

from rejoinder.ir.expressions.nodes import Call, Column, Literal, Node, Variable, literal_identity, walk


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
                text = literal_identity(node.value)
            case _:
                name = f"{node.kind} {node.type}"
                if isinstance(node, Call):
                    name = " ".join([node.operation.name, *map(literal_identity, node.operation.options)])
                text = f"{name}({', '.join(texts[part.digest] for part in node.parts)})"
        texts[node.digest] = text
    return texts[root.digest]
