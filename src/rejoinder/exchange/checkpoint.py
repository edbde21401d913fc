"""Spark's checkpoint of a flow, in generations.

Invariants:
- a generation is a folder under a name that nobody else can make, written before a manifest names it, and used by the
  one driver that made it. So a second driver on the same state never meets the first one's files: manifests fence;
- it starts as of the last committed epoch. What was planned for an epoch that was not committed is planned anew;
- Spark knows sources by their position: each takes its offset and its log to its new one, new sources start afresh.

The generation before the present one is kept, in case its driver is still at it.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import uuid
from collections.abc import Sequence
from typing import Any, Protocol

from rejoinder.errors import Corrupt, Unsupported
from rejoinder.kernels.faults import reach

TICKS = "ticks/0"  # the source that has no rows
_NOTHING = "-"  # Spark's word for a source of which nothing was read
_FIRST_HEADER = ["v1", json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 0})]


class Ledger(Protocol):
    """Where it is written down how far sources are read: the engine."""

    positions: dict[str, Any]

    @property
    def epoch(self) -> int: ...
    def annotate(self, positions: dict[str, Any]) -> None: ...


class Checkpoint:
    """The generations of one flow below `folder`, as one driver sees them."""

    def __init__(self, folder: str) -> None:
        self.folder = folder.removeprefix("file://")
        self._own = ""

    @property
    def is_fixed(self) -> bool:
        """Whether the sources must stay those of the first run: there are no folders to copy."""
        return "://" in self.folder

    def generation(self, ledger: Ledger, sources: Sequence[str]) -> str:
        """The folder from which a query over these sources goes on; `sources` identifies each by position."""
        known = ledger.positions.get("spark")
        same = known is not None and known["sources"] == list(sources)
        if known is not None and same and self._is_own(known["folder"]):
            return f"{self.folder}/{known['folder']}"
        number = 0 if known is None else known["number"] + 1
        name = f"{number}-{secrets.token_hex(4)}"
        if not self.is_fixed:
            before = "" if known is None else f"{self.folder}/{known['folder']}"
            take_over(before, [] if known is None else known["sources"], f"{self.folder}/{name}", sources, ledger.epoch)
        elif known is not None or ledger.epoch >= 0:
            raise Unsupported(
                "the set of sources changed, and the checkpoint is not on a local disk",
                detail=f"checkpoint {self.folder}",
                hint="define all sources before the first run, or keep the checkpoint on a shared file system",
            )
        reach("in_generation", ledger.epoch)
        ledger.annotate({**ledger.positions, "spark": {"number": number, "folder": name, "sources": list(sources)}})
        reach("after_generation", ledger.epoch)
        self._own = name
        self._forget_before(number - 1)
        return f"{self.folder}/{name}"

    def _is_own(self, name: str) -> bool:
        """Whether this driver may go on with a generation. Where there are no folders to copy there is only one."""
        return name == self._own or self.is_fixed

    def abandon(self) -> None:
        """Plan anew from the last committed epoch at the next start: what was planned has failed."""
        self._own = ""

    def _forget_before(self, number: int) -> None:
        if self.is_fixed:
            return
        for name in os.listdir(self.folder):
            if name.partition("-")[0].isdigit() and int(name.partition("-")[0]) < number:
                shutil.rmtree(f"{self.folder}/{name}", ignore_errors=True)


def take_over(old: str, before: Sequence[str], new: str, after: Sequence[str], epoch: int) -> None:
    """Write the generation `new` for the sources `after` from `old` with the sources `before`, as of an epoch."""
    os.makedirs(new)
    lines = _offsets(old, epoch) if before and epoch >= 0 else [*_FIRST_HEADER, *(_NOTHING for _ in before)]
    header, offsets = lines[:2], dict(zip(before, lines[2:], strict=True))
    numbers = {name: number for number, name in enumerate(dict.fromkeys(before))}
    for number, name in enumerate(dict.fromkeys(after)):
        if name in numbers:
            _copy_log(f"{old}/sources/{numbers[name]}", f"{new}/sources/{number}", offsets[name])
    if epoch < 0:
        return
    moved = "\n".join([*header, *(offsets.get(name, _NOTHING) for name in after)])
    for known in (epoch - 1, epoch) if epoch else (epoch,):  # Spark wants two; what lies between them is done
        _write(f"{new}/offsets/{known}", moved)
    if os.path.exists(f"{old}/commits/{epoch}"):
        os.makedirs(f"{new}/commits")
        shutil.copy(f"{old}/commits/{epoch}", f"{new}/commits/{epoch}")
    else:
        _write(f"{new}/commits/{epoch}", 'v1\n{"nextBatchWatermarkMs":0}')
    # Spark stops a query of the same identity without a word, and its driver should hear of it from a manifest.
    _write(f"{new}/metadata", json.dumps({"id": str(uuid.uuid4())}))
    if os.path.isdir(f"{old}/state"):
        had, have = ([name for name in names if name != TICKS] for names in (before, after))
        if have[: len(had)] != had:
            raise Unsupported(
                "a source is dropped from a flow that has a DataFrame with state of its own",
                detail="Spark finds the state of deduplications and aggregations by their position",
                hint="do what needs state in a view, or in a query of its own that writes to a table",
            )
        shutil.copytree(f"{old}/state", f"{new}/state", copy_function=_link)


def _offsets(checkpoint: str, epoch: int) -> list[str]:
    path = f"{checkpoint}/offsets/{epoch}"
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().split("\n")
    except OSError as missing:
        raise Corrupt(
            f"Spark's checkpoint does not know epoch {epoch}",
            detail=f"`{path}`: {missing.strerror}",
            hint="restore the checkpoint that belongs to this state",
        ) from missing


def _copy_log(old: str, new: str, offset: str) -> None:
    """Copy what a source keeps: of a log of files, what is committed; of anything else (where it began), all."""
    names = os.listdir(old) if os.path.isdir(old) else []
    committed = json.loads(offset).get("logOffset") if offset.startswith("{") else None
    if committed is None and offset == _NOTHING and any(_lists_files(f"{old}/{name}") for name in names):
        committed = -1
    if committed is not None and _is_whole(names, committed):
        names = [name for name in names if _number(name) <= committed]
    os.makedirs(new)
    for name in names:
        _link(f"{old}/{name}", f"{new}/{name}")


def _lists_files(path: str) -> bool:
    with open(path, "rb") as file:
        return b'{"path":' in file.read(4096)


def _is_whole(names: Sequence[str], last: int) -> bool:
    """Whether a log goes from its start, or from a compaction, to `last` without what comes after that."""
    entries = [name for name in names if not name.startswith(".")]
    compacted = (_number(name) for name in entries if name.endswith(".compact"))
    first = max((number for number in compacted if number <= last), default=0)
    return {_number(name) for name in entries}.issuperset(range(first, last + 1))


def _number(name: str) -> int:
    """The number of an entry: 9, 9.compact, and their checksums .9.crc and .9.compact.crc."""
    digits = name.lstrip(".").partition(".")[0]
    return int(digits) if digits.isdigit() else -1


def _link(old: str, new: str) -> None:
    """Copy a file that is never changed in place."""
    try:
        os.link(old, new)
    except OSError:
        shutil.copy(old, new)


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
