"""Between streams and tables in a dataflow: the last row of each key, and changes as rows that stay.

- `Last` keeps one row per key, as a table with a primary key does: the rows themselves, by key.
- `Recording` keeps nothing: what changes in an epoch is netted where equal rows meet, and written down.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rejoinder.ir import logical
from rejoinder.ir.expression import column
from rejoinder.plan.blocks.normal_form import Block, Columns, Derived, Last, Recording, derive
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.steps import Record, Upsert
from rejoinder.plan.rounds.fragments import Fragment, Rounds
from rejoinder.plan.rounds.program import row_arrangement


def last(node: logical.Latest, block: Block, known: dict[str, Derived]) -> Block:
    """The block that reads the last rows of a block."""
    names = {i: f"c{at}" for at, (i, _) in enumerate(node.columns)}
    operation = Last(tuple(names[i] for i in node.key), None if node.order is None else names[node.order])
    return derive("last", operation, (_listed(block, node.columns),), node.columns, known)


def recorded(node: logical.Records, block: Block, known: dict[str, Derived]) -> Block:
    """The block that reads the changes of a block."""
    columns = (*node.columns, *node.system)
    return derive("changes", Recording(), (_listed(block, node.columns),), columns, known)


def _listed(block: Block, columns: Columns) -> Block:
    outputs = dict(block.outputs)
    return replace(block, outputs=tuple((i, outputs[i]) for i, _ in columns))


def last_arrangement(derived: Derived, last: Last) -> Arrangement:
    """The last rows by key, in which NULL is a value like any other."""
    parts = tuple(column(name, derived.schema.field(name).type) for name in last.key)
    return Arrangement(derived.name, Key(parts, frozenset(range(len(parts)))), derived.schema)


def keep_last(rounds: Rounds, derived: Derived, last: Last, *, whole: bool) -> None:
    """Turn the rows of `/input` into changes of the last rows; `whole`: they are all there is."""
    base = last_arrangement(derived, last)
    at = rounds.deliver(derived.name + "/input", base.key)
    change = rounds.stream(derived.name)
    rounds.add(at.round, Upsert(at.stream, change, base, last.order, whole=whole))
    rounds.fragments[derived.name] = [Fragment(at.round, change, base.key.text, hashed=True)]
    rounds.arrange(derived.name, check=False)


def record(rounds: Rounds, derived: Derived) -> None:
    """Turn the changes of `/input` into rows."""
    inputs, schema = derived.name + "/input", derived.blocks[0].schema
    at = rounds.deliver(inputs, row_arrangement(inputs, schema).key)
    rows = rounds.stream(derived.name)
    undo, epoch, time = derived.schema.names[len(schema) :]
    rounds.add(at.round, Record(at.stream, rows, undo, epoch, time))
    rounds.fragments[derived.name] = [Fragment(at.round, rows)]
    rounds.arrange(derived.name, check=False)


def depends_on_past(relations: Mapping[str, Derived]) -> bool:
    """Whether what relations hold cannot be found from the present content of what they read."""
    return any(
        isinstance(derived.operation, Last | Recording)
        or any(each.arrival for block in derived.blocks for each in block.inputs)
        for derived in relations.values()
    )
