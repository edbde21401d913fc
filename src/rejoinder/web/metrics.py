"""Metrics of a flow in the text format of Prometheus, from its newest commit."""

from __future__ import annotations

from collections.abc import Iterable

from rejoinder.web.flow_status import FlowStatus

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Sample = tuple[dict[str, str], float | None]


def metrics_text(status: FlowStatus) -> str:
    """Return all metrics. They are gauges of the newest commit, so a restart of the page loses nothing."""
    last = status.entries[-1] if status.entries else None
    timed = next((entry for entry in reversed(status.entries) if "commit" in entry.parts), last)
    families: list[tuple[str, str, Iterable[Sample]]] = [
        ("epoch", "The last committed epoch.", [({}, status.epoch)]),
        ("commit_time_seconds", "Processing time of the last committed epoch.", [({}, status.time_ms / 1000)]),
        (
            "epoch_duration_seconds",
            "Duration of the newest epoch of which all parts are known.",
            [({"part": part}, value / 1000) for part, value in (timed.parts if timed else {}).items()],
        ),
        (
            "epoch_rows_in",
            "Rows read in the last epoch.",
            [({"source": n}, v) for n, v in (last.rows_in if last else {}).items()],
        ),
        (
            "epoch_changes",
            "Changes in the last epoch.",
            [({"view": n}, v) for n, v in (last.rows_out if last else {}).items()],
        ),
        ("epoch_bytes_written", "Bytes written in the last epoch.", [({}, last.bytes_written if last else None)]),
        (
            "lag_seconds",
            "Age of the newest file that the last epoch read.",
            [({}, last.lag_ms / 1000 if last and last.lag_ms is not None else None)],
        ),
        ("arrangement_rows", "Stored rows.", [({"arrangement": n}, each.rows) for n, each in status.stored.items()]),
        ("arrangement_bytes", "Stored bytes.", [({"arrangement": n}, each.bytes) for n, each in status.stored.items()]),
        (
            "watermark_delay_seconds",
            "How far a watermark is behind processing time.",
            [
                ({"source": w.source, "column": w.column, "partition": w.partition}, w.behind_ms / 1000)
                for w in status.watermarks
                if w.behind_ms is not None
            ],
        ),
        (
            "watermark_blocks",
            "Number of views that wait for a watermark.",
            [
                ({"source": w.source, "column": w.column, "partition": w.partition}, len(w.blocks))
                for w in status.watermarks
            ],
        ),
        ("late_rows", "Late rows since the view was created.", [({"view": v.name}, v.late) for v in status.views]),
        ("pending_changes", "Changes that are not emitted yet.", [({"view": v.name}, v.pending) for v in status.views]),
        (
            "rejected_records",
            "Records that could not be read.",
            [({"source": n}, v) for n, v in status.rejected.items()],
        ),
        (
            "sink_epochs_behind",
            "Committed epochs that a sink has not got.",
            [({"sink": s.name}, s.behind) for s in status.sinks],
        ),
    ]
    return "".join(_family(f"rejoinder_{name}", about, samples) for name, about, samples in families)


def _family(name: str, about: str, samples: Iterable[Sample]) -> str:
    lines = [f"{name}{_labels(labels)} {value:.10g}" for labels, value in samples if value is not None]
    return "\n".join([f"# HELP {name} {about}", f"# TYPE {name} gauge", *lines]) + "\n"


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    r"""Escape the value of a label.

    >>> _escaped('a"b\\c')
    'a\\"b\\\\c'
    """
    return value[:500].replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
