"""Watermarks that queries declare for streams (IMPOSE_ORDER), in addition to those of sources.

A source has one set of watermarks. If it declares none, the first view with IMPOSE_ORDER decides for all such views:
they leave out the same late rows. Other views read every row. A view with another column or lag is refused: rows that
are late for only one of the views would need a second copy of the state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from rejoinder.errors import DefinitionConflict, Unsupported
from rejoinder.ir.catalog import Source
from rejoinder.ir.identities import RelationId, SideOutput, source_of
from rejoinder.ir.logical import Node, Scan

Imposers = dict[str, str]


def imposing_scans(node: Node) -> Iterator[Scan]:
    """Yield the scans of a tree that impose an order."""
    if isinstance(node, Scan):
        yield from (node,) if node.imposed else ()
        return
    below = [getattr(node, name) for name in ("input", "left", "right") if hasattr(node, name)]
    for inner in (*below, *getattr(node, "inputs", ())):
        yield from imposing_scans(inner)


def with_imposed(sources: Mapping[str, Source], view: str, root: Node, imposers: Imposers) -> dict[str, Source]:
    """Add the watermarks that the query of a view imposes to the sources; `imposers` records the first view."""
    result = dict(sources)
    for scan in imposing_scans(root):
        source, asked = result.get(source_of(scan.relation)), dict(scan.imposed)
        if source is None or source.kind == "table":
            raise Unsupported(
                f"IMPOSE_ORDER on `{scan.relation}`, which is not a stream, is not supported",
                detail=f"view `{view}`; {_reason(scan.relation, source)}",
                hint="impose an order on a STREAM or a CHANGELOG",
            )
        if not source.watermarks:
            result[source.name] = replace(source, watermarks=asked)
            imposers[source.name] = view
        elif not asked.items() <= source.watermarks.items() or (
            source.name in imposers and asked != dict(source.watermarks)
        ):
            raise _conflict(source, view, asked, imposers.get(source.name))
    return result


def _reason(relation: RelationId, source: Source | None) -> str:
    """Return why no order can be imposed on a relation."""
    if source is not None:
        return "rows of a table are replaced, whatever their time"
    if isinstance(relation, SideOutput):
        return "its rows are stored in order of arrival, not of event time"
    return f"`{relation}` has an index, and is not inlined"


def _conflict(source: Source, view: str, asked: Mapping[str, int], first: str | None) -> DefinitionConflict:
    there, here = (
        ", ".join(
            f"`{column}` {'with an explicit watermark' if lag is None else f'at a lag of {lag}'}"
            for column, lag in each.items()
        )
        for each in (source.watermarks, asked)
    )
    by = f"view `{first}`" if first is not None else "its WATERMARK"
    return DefinitionConflict(
        f"`{view}` imposes another order on `{source.name}` than {by} does",
        detail=f"stored: {there}; given: {here} (of timestamps in microseconds)",
        hint=f"use the same order, or CREATE a second STREAM on the data of `{source.name}` for the other order",
    )
