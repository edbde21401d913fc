"""The defects that mutants put back: each fix of issue 11, points 5 and 6, taken out, and a few others.

A fix is taken out by editing the source of the function that holds it (`edited`), so a mutant is the code without the
fix and nothing else. Where the fix was a change of design, the older design is in `designs.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rejoinder.connectors.files import target as file_sink
from rejoinder.engine import outbox, publisher, version
from rejoinder.engine.engine import Engine
from rejoinder.engine.maintenance import backup, state_deletion
from rejoinder.engine.publisher import Publisher
from rejoinder.engine.time.processing_time import ProcessingTime
from rejoinder.state import sink_progress, timeline
from rejoinder.store.commits import commit, file_log, lost_commits, newest_manifest
from rejoinder.store.objects import local_objects
from rejoinder.store.runs import run
from rejoinder.testing import driver as driver_module
from tests.simulation import backups, designs, invariants
from tests.simulation.designs import edited
from tests.simulation.knobs import Knobs

Patch = tuple[Any, str, Any]
SLEEPERS = Knobs(
    {"rival": 0.2, "sleep": 0.1, "kill": 0.05}, switch=0.2, ticks=100, commits=18, keep_versions=2, part_rows=1
)
PROMPT = Knobs({"rival": 0.2, "sleep": 0.3}, switch=0.2, ticks=60, commits=12, keep_versions=8, is_prompt=True)
STALE = Knobs({"rival": 0.3, "stale": 0.1}, switch=0.1, ticks=60, commits=12, keep_versions=8, is_prompt=True)
LIGHTS_OUT = Knobs({"power": 0.2, "rival": 0.1}, switch=0.1, ticks=60, commits=10, on_disk=True, keep_versions=3)
MERGERS = Knobs(
    {"rival": 0.2, "sleep": 0.6}, switch=0.04, ticks=100, commits=30, keep_versions=2, history=1, small_spines=True
)
NOTES = Knobs({"rot": 0.2}, ticks=20, commits=10, keep_versions=2)
ROTTEN = Knobs({"rot": 0.3, "kill": 0.1}, ticks=30, commits=12, keep_versions=3, timeline_block=2, recent_files=2)
LAGGING = Knobs({"rot": 0.4, "crash": 0.4}, ticks=40, commits=16, keep_versions=3)
CRASHES = Knobs({"kill": 0.2}, switch=0.05, ticks=40, commits=14)
BACKUPS = Knobs({"backup": 0.3, "restore": 0.1}, switch=0.2, ticks=60, commits=18, keep_versions=2)
INTERRUPTED = Knobs({"backup": 0.4, "restore": 0.15, "fail": 0.03}, ticks=60, commits=18, keep_versions=8)
RESTORES = Knobs({"backup": 0.2, "restore": 0.15, "kill": 0.2}, switch=0.05, ticks=60, commits=18, keep_versions=8)
GAPS = Knobs({"backup": 0.1, "restore": 0.1, "crash": 0.4}, ticks=60, commits=18, keep_versions=8)
UNMOUNTED = Knobs({"unmount": 0.3}, ticks=30, commits=10)
FORKS = Knobs({"rival": 0.4, "hint": 0.4, "sleep": 0.3}, switch=0.2, ticks=25, commits=4, keep_versions=2)
FIRST_COMMITS = Knobs({"fail": 0.03}, ticks=8, commits=3)
OLD_FILES = Knobs({"rival": 0.3, "sleep": 0.3}, switch=0.2, ticks=60, commits=12, keep_versions=2, recent_files=2)


@dataclass(frozen=True)
class Defect:
    """A defect: what it is, and what is put in the place of what."""

    name: str
    what: str
    patches: tuple[Patch, ...]
    focus: Knobs | None = None
    """A world in which it matters; else that of each seed."""
    sink: str = ""
    """The format of the one sink that there is; else the sinks of each seed."""


COMPARE = outbox.Outbox._compare

DEFECTS = (
    # Lost answers of a PUT, fences (point 6)
    Defect(
        "unconfirmed", "a name that was free because it was deleted counts", ((commit, "_confirm", designs.nothing),)
    ),
    Defect(
        "forgetful",
        "a commit whose answer was lost is ignored: the driver treats it as that of another one",
        ((Publisher, "publish", designs.forgetful_publish), (Publisher, "settle", designs.nothing)),
    ),
    Defect(
        "skipped probe",
        "a first commit is ignored if the request fails that checks the storage after it",
        (
            (
                publisher,
                "commit",
                edited(
                    commit.commit,
                    ("is_fenced = manifest.version > 0 or _is_fenced(store, manifest)", "pass"),
                    ("if not is_fenced:", "if manifest.version == 0 and not _is_fenced(store, manifest):"),
                ),
            ),
        ),
        FIRST_COMMITS,
    ),
    Defect(
        "unmarked flow",
        "a first commit under a name that was dropped counts if the listing is stale",
        ((commit, "marked_flow", designs.nothing),),
        FORKS,
    ),
    Defect(
        "kept rows",
        "rows of a commit that is not settled are kept as well",
        ((Publisher, "is_open", lambda *_: False),),
    ),
    Defect(
        "new flow",
        "an empty listing without a hint is a new flow, whatever marks the old one",
        ((newest_manifest, "sign_of_use", designs.nothing), (commit, "marked_flow", designs.nothing)),
    ),
    Defect(
        "marker first",
        "a flow is marked before its first commit: a crash in between looks like a lost flow",
        (
            (
                Publisher,
                "publish",
                edited(Publisher.publish, ("self._is_marked and manifest.version:", "self._is_marked:")),
            ),
        ),
        CRASHES,
    ),
    Defect(
        "damage alarm",
        "a driver that was replaced calls the state damaged",
        ((state_deletion, "_refuse_overtaken", designs.nothing),),
        SLEEPERS,
    ),
    Defect(
        "damage alarm of files",
        "a driver that was replaced calls its log of files damaged",
        ((driver_module, "deletion_named", designs.unnamed),),
        OLD_FILES,
    ),
    Defect(
        "damage alarm of deliveries",
        "a driver that was replaced calls the changes damaged that it delivers",
        ((outbox, "deletion_named", designs.unnamed),),
        MERGERS,
        "function",
    ),
    Defect(
        "unfenced delivery",
        "a driver delivers without a look whether it was replaced",
        ((Engine, "check_fence", designs.nothing),),
        PROMPT,
        "function",
    ),
    Defect(
        "listing alone",
        "the look at the fence trusts a listing that may be stale",
        (
            (
                Publisher,
                "check_fence",
                edited(Publisher.check_fence, ("self.store.exists(name_of(manifest.version + 1))", "False")),
            ),
        ),
        STALE,
        "function",
    ),
    Defect(
        "unclaimed delivery",
        "a driver delivers before it has taken over: two deliver with the same token",
        ((Engine, "claim", designs.unclaimed),),
        SLEEPERS,
    ),
    Defect(
        "no lease",
        "a driver does not remove what those before it have staged: they go on",
        ((file_sink, "_clear_staged", designs.nothing),),
        SLEEPERS,
        "json",
    ),
    Defect(
        "foreign folders",
        "a driver that was replaced removes what the live one has staged",
        (
            (
                file_sink,
                "_clear_staged",
                edited(file_sink._clear_staged, (" and not (number.isdigit() and int(number) > writer)", "")),
            ),
        ),
        SLEEPERS,
        "json",
    ),
    Defect(
        "wrong advice",
        "a driver that was replaced calls the state older than the sink",
        ((outbox.Outbox, "_compare", edited(COMPARE, ("engine.check_fence()", "pass"))),),
        SLEEPERS,
    ),
    Defect(
        "wrong owner",
        "a driver that was replaced raises that the folder of its new sink belongs to another sink",
        (
            (
                outbox.Outbox,
                "check_new",
                edited(outbox.Outbox.check_new, ("self.engine.check_fence()", "pass")),
            ),
        ),
        SLEEPERS,
        "json",
    ),
    # One commit (point 5)
    Defect(
        "loose positions",
        "what a source has read is one object beside the manifest",
        ((driver_module, "new_files", designs.loose_files), (version, "position_files", designs.loose_position_files)),
        ROTTEN,
    ),
    Defect(
        "loose file log", "the log of files is read unchecked", ((file_log, "read_checked", designs.unchecked),), ROTTEN
    ),
    Defect(
        "loose progress",
        "progress of sinks is one object without a checksum beside the manifest",
        (
            (outbox, "write_progress", designs.plain_note),
            (version, "recorded", designs.plain_recorded),
            (version, "progress_file", lambda _: "sinks/progress"),
        ),
        NOTES,
    ),
    Defect(
        "older sink",
        "a sink that was restored from an older copy does not get what it lacks",
        ((outbox.Outbox, "_compare", edited(COMPARE, ("stored < recorded.changed", "False"))),),
        ROTTEN,
        "json",
    ),
    Defect(
        "older state",
        "a sink may be ahead of the state",
        ((outbox.Outbox, "_compare", edited(COMPARE, ("stored is not None and stored > engine.epoch", "False"))),),
        RESTORES,
        "json",
    ),
    Defect(
        "empty sink",
        "a sink that has lost its progress goes on",
        (
            (
                outbox.Outbox,
                "_compare",
                edited(
                    COMPARE,
                    ("recorded.changed is not None:", "recorded.changed is not None and stored is not None:"),
                ),
            ),
        ),
        ROTTEN,
    ),
    Defect(
        "lost folder",
        "a sink is asked how far it is once per process: a folder that is lost later is made anew",
        (
            (
                outbox.Outbox,
                "_deliver",
                edited(
                    outbox.Outbox._deliver, ("is_new or not is_compared", "is_new"), ("is_first=", "is_first=True or ")
                ),
            ),
        ),
        UNMOUNTED,
        "json",
    ),
    Defect(
        "loose sink",
        "what the folder of a sink stores is not checked",
        (
            (
                file_sink.FilesTarget,
                "_read",
                edited(file_sink.FilesTarget._read, ("_sealed(dict(fields)) != data", "False")),
            ),
        ),
        LAGGING,
        "json",
    ),
    Defect(
        "foreign notes",
        "a note is believed that belongs to another commit of the same version",
        ((version, "recorded", edited(sink_progress.recorded, ('fields["manifest"] != manifest.checksum', "False"))),),
        GAPS,
        "function",
    ),
    Defect("loose timeline", "timeline blocks are unchecked", ((timeline, "read_checked", designs.unchecked),), ROTTEN),
    Defect("loose runs", "runs are read unchecked", ((run, "_verified", designs.unverified),), ROTTEN),
    Defect(
        "lost manifest",
        "a state goes back if its newest manifest is lost",
        ((newest_manifest, "refuse_lost", designs.nothing),),
        ROTTEN,
    ),
    Defect(
        "loose hint",
        "the hint has no checksum",
        ((lost_commits, "hinted_version", designs.any_hint), (newest_manifest, "hinted_version", designs.any_hint)),
        ROTTEN,
    ),
    Defect(
        "early progress",
        "a backup writes the progress of sinks before the manifest that it belongs to",
        (
            (
                backups,
                "backup",
                edited(
                    backup.backup,
                    (
                        "check_content(target, manifest)  # another",
                        "write_progress(target, manifest, progress)  # another",
                    ),
                ),
            ),
        ),
        INTERRUPTED,
        "function",
    ),
    Defect("plain backup", "a backup copies a folder as it is", ((backups, "backup", designs.plain_backup),), BACKUPS),
    # Clock, disk, garbage (points 8 and 9, and what held before)
    Defect("frozen clock", "an epoch believes any clock", ((ProcessingTime, "read", designs.believed),)),
    Defect("unsynced files", "content is not flushed", ((local_objects.Disk, "_flush", designs.nothing),), LIGHTS_OUT),
    Defect(
        "unsynced names",
        "folders are not flushed",
        ((local_objects.Disk, "_flush_folder", designs.nothing),),
        LIGHTS_OUT,
    ),
    Defect("blind vacuum", "vacuum finds nothing", ((invariants, "find_garbage", lambda *_: []),)),
)
