"""The difference of two contents of views, as a dataflow: rows of the new content minus rows of the old one.

Both contents are sent to the buckets of their rows, so equal rows meet and cancel there. What remains is written to
the changelog of the view. Cost: both contents are read once; only the difference is written.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from rejoinder.ir.identities import ViewRows
from rejoinder.plan.physical.arrangement import Arrangement
from rejoinder.plan.physical.dataflow import ChangelogScan, Dataflow, Scan
from rejoinder.plan.physical.steps import Channel, Emit, Send, Step


def new_content(view: str) -> str:
    """Return the name of the changelog that has the new content. No view has such a name."""
    return f"{view}/new"


def difference(views: Mapping[str, pa.Schema]) -> Dataflow:
    """Return the dataflow that appends the difference to the changelog of each view."""
    scans: dict[str, Scan] = {}
    sends: list[Step] = []
    emits: list[Step] = []
    for number, (view, schema) in enumerate(views.items()):
        key = Arrangement.by_row(ViewRows(view), schema).key
        channel = Channel(number, f"difference:{view}", key, round=1)
        for name, is_retracted in ((new_content(view), False), (view, True)):
            stream = f"scan:{name}"
            scans[name] = ChangelogScan(name, stream, is_retracted)
            sends.append(Send(stream, channel))
        emits.append(Emit(channel.stream, view))
    return Dataflow(scans, (tuple(sends), tuple(emits)), views=dict(views))
