"""Enrichment in a dataflow: the rows of a relation with what a function of the user's answers about each.

A row is asked about when it comes, and keeps its answer for as long as it is there. So what is kept is the enriched
relation itself, by the columns of the row: a row that is taken back, or that comes a second time, finds its answer,
whatever the function would say by now. Rows that can neither be taken back nor met again are forgotten.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from rejoinder.ir import logical
from rejoinder.ir.expression import column
from rejoinder.plan.blocks.normal_form import Block, Derived, Enrichment, derive
from rejoinder.plan.physical.arrangement import Arrangement, Key
from rejoinder.plan.physical.steps import Enrich
from rejoinder.plan.rounds.fragments import Fragment, Rounds


def enriched(node: logical.Enrich, block: Block, known: dict[str, Derived]) -> Block:
    """The block that reads a block's rows with their answers."""
    outputs = dict(block.outputs)
    asked = replace(block, outputs=tuple((i, outputs[i]) for i, _ in node.arguments))
    arguments = tuple((i, e.type) for i, e in asked.outputs)
    answers = tuple((i, kind) for i, _, kind in node.answers)
    operation = Enrichment(
        node.function,
        tuple(name for _, name in node.arguments),
        tuple((name, kind) for _, name, kind in node.answers),
    )
    return derive("enriched", operation, (asked,), (*arguments, *answers), known)


def answers_arrangement(derived: Derived, enrichment: Enrichment, relation: str | None = None) -> Arrangement:
    """The rows with their answers, by all columns of the row, in which NULL is a value like any other."""
    fields = list(derived.schema)[: len(enrichment.arguments)]
    key = Key(tuple(column(field.name, field.type) for field in fields), frozenset(range(len(fields))))
    return Arrangement(relation or derived.name, key, derived.schema)


def enrich(
    rounds: Rounds, derived: Derived, enrichment: Enrichment, *, whole: bool, answered: str | None = None
) -> None:
    """Turn the changes of `/input` into changes of the rows with answers; `whole`: they are all there is.

    `answered`, if given, is the name of a relation with rows that were answered before.
    """
    inputs = derived.name + "/input"
    answers = answers_arrangement(derived, enrichment)
    at = rounds.deliver(inputs, answers.key)
    change = rounds.stream(derived.name)
    names = pa.schema([(name, derived.schema.field(at).type) for at, name in enumerate(enrichment.arguments)])
    columns = pa.schema(enrichment.answers)
    views = rounds.program.readers(derived.name)
    before = answers if answered is None else answers_arrangement(derived, enrichment, answered)
    is_new = whole and answered is None
    rounds.add(at.round, Enrich(at.stream, change, before, enrichment.function, names, columns, views, whole=is_new))
    rounds.fragments[derived.name] = [Fragment(at.round, change, answers.key.text, hashed=True)]
    rounds.arrange(derived.name, check=False)
