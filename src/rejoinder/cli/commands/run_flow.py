"""`rejoinder run`: create the definitions of a file, or recognise them, run the flow, and answer the queries."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from rejoinder.cli.commands.edited_file import confirmed
from rejoinder.cli.commands.first_run import removed_on_failure
from rejoinder.cli.commands.follow import interruptible
from rejoinder.cli.commands.open_state import open_state
from rejoinder.cli.commands.script import Script, read_script
from rejoinder.cli.commands.writable_state import check_writable
from rejoinder.cli.spark_options import Settings
from rejoinder.cli.terminal.answers import Showing, show_answer
from rejoinder.cli.terminal.change_lines import changes_of, show_epoch
from rejoinder.cli.terminal.error_places import placed
from rejoinder.cli.terminal.progress_line import ProgressLine
from rejoinder.cli.terminal.screen import err, note, status
from rejoinder.engine.definitions.definition_batch import new_sources
from rejoinder.engine.engine import HISTORY
from rejoinder.engine.epoch_progress import Progress
from rejoinder.engine.statements import find_view
from rejoinder.engine.status.pending_changes import pending_views
from rejoinder.errors import UnknownName, Unsupported
from rejoinder.formats.text.byte_size import size
from rejoinder.ir.catalog import Catalog, Source
from rejoinder.plan.physical.dataflow import SourceScan
from rejoinder.planner import plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rejoinder.api.flow import Flow
    from rejoinder.exchange.session.jvm_gateway import JvmLog


def check(script: Script, catalog: Catalog, fed: Collection[str] = ()) -> Catalog:
    """Return the catalog after the definitions. Raises before Spark starts if one cannot be planned or has no input.

    `fed`: the sources with committed rows. A definition that reads none of them may be changed.
    """
    from rejoinder.exchange.streaming.source_frames import check_path

    batch = script.applied(catalog, fed)
    for source in new_sources(batch):
        _refuse_explicit_watermark(source)
    with placed(script.text, script.path):
        dataflow = plan(batch.catalog, {}).dataflow
    for scan in dataflow.scans.values():
        if isinstance(scan, SourceScan) and "path" in scan.source.options:
            check_path(scan.source.name, scan.source.options["path"])
    return batch.catalog


def _refuse_explicit_watermark(source: Source) -> None:
    """Raise `Unsupported` for an explicit watermark: the command line cannot advance it."""
    columns = [column for column, delay in source.watermarks.items() if delay is None]
    if columns:
        raise Unsupported(
            f"the watermark of `{source.name}`.`{columns[0]}` would never advance",
            detail="without DELAY the watermark is explicit: a program passes it, with flow.watermark(…) in Python",
            hint=f"WATERMARK {columns[0]} DELAY OF …, or run the flow from Python",
        )


def run_file(
    path: Path,
    state: str,
    *,
    interval: str | None,
    settings: Settings,
    watched: str | None,
    showing: Showing,
    is_debug: bool,
    is_confirmed: bool = False,
) -> None:
    """Run a file until all input is processed, or with an interval until a signal. `watched`: a view to print.

    A file that replaces views asks first, unless `is_confirmed`.
    """
    script = read_script(path)
    before = open_state(state, may_create=True)
    check_writable(before.store)
    script = confirmed(script, before, is_confirmed=is_confirmed)
    catalog = check(script, before.version.catalog, before.version.fed)
    if watched is not None and catalog.get(watched) not in catalog.views:
        views = ", ".join(view.name for view in catalog.views)
        raise UnknownName(
            f"`{watched}` is a source: only a view can be watched",
            hint=f"views: {views}" if views else f"CREATE VIEW … AS SELECT * FROM {watched}, and watch that",
        )
    if before.version.manifest is None:
        note(f"new state in {state}")
    elif before.epoch >= 0:
        note(f"state in {state}, resumed after epoch {before.epoch}")
    if not catalog.views and not script.questions:
        note("no view is defined: there is nothing to keep up to date")
    with removed_on_failure(before), spark_flow(state, settings, is_debug=is_debug) as flow:
        _run(flow, state, script, interval, watched, showing)
        for question in script.questions:
            with placed(script.text, script.path):
                answer = flow.answer(question)
            show_answer(answer, showing)


def define_all(flow: Flow, script: Script, stopped: threading.Event) -> None:
    """Create new definitions in one commit, unless the user has stopped the command."""
    if script.definitions and not stopped.is_set():
        for text in flow.define(*script.definitions, is_rerun=True).notes:
            note(text)


def _watch(flow: Flow, view: str, showing: Showing) -> None:
    """Print the changes of a view after every epoch."""
    name, _ = find_view(flow.engine, view)

    def show(progress: Progress) -> None:
        changes = changes_of(flow.engine, name, progress.epoch)
        if changes:
            show_epoch(name, progress.epoch, changes, showing.limit)

    flow.on_progress(show)


def _run(flow: Flow, state: str, script: Script, interval: str | None, watched: str | None, showing: Showing) -> None:
    line = ProgressLine("reading…" if interval is None else "waiting for input…")

    def work(stopped: threading.Event) -> None:
        define_all(flow, script, stopped)
        if stopped.is_set():
            return
        if watched is not None:
            _watch(flow, watched, showing)
        flow.on_progress(line.take)
        if interval is None:
            with warnings.catch_warnings():  # notices of epochs are warnings of run(); the line has printed them
                warnings.simplefilter("ignore")
                flow.run()
        else:
            flow.start(interval=interval)
            flow.wait()

    def stop() -> None:
        line.say("stopping after this epoch…")
        flow.stop()

    with line:
        caught_up = interruptible(work, stop)
    if caught_up and not flow.engine.dataflow.scans:
        return  # no view is maintained; queries read their sources themselves
    end = "caught up" if caught_up else "stopped"
    if line.last is not None:
        summary = f" at epoch {flow.epoch}: {line.summary()}; state {size(line.last.state_bytes)} in {state}"
    else:
        summary = f" at epoch {flow.epoch}: nothing new" if flow.epoch >= 0 else ": no input yet"
    err.print(Text.assemble((end, "bold green"), summary))
    for view, condition in pending_views(flow.engine).items():
        note(f"changes of `{view}` wait {condition}")


@contextmanager
def spark_flow(state: str, settings: Settings, *, is_debug: bool) -> Iterator[Flow]:
    """Open a flow on the session of this process, or on a local session of its own.

    The output of its own JVM is shown only with `is_debug`; errors are reported by Rejoinder.
    """
    log: JvmLog | None = None
    session: SparkSession | None = None
    try:
        with status("starting Spark…"), _hushed(not is_debug):
            from rejoinder.api.flow import Flow
            from rejoinder.exchange.session.jvm_gateway import JvmLog
            from rejoinder.exchange.session.spark_session import make_session, present_session

            log = JvmLog(is_quiet=not is_debug)
            if present_session() is None:
                session = make_session(settings.cores, memory=settings.memory, settings=settings.conf, log=log)
            with warnings.catch_warnings():  # about settings, which are ours or the user's
                warnings.simplefilter("ignore")
                flow = Flow(state, parallelism=settings.parallelism, history=settings.history or HISTORY)
        yield flow
    except KeyboardInterrupt:
        session = None  # the connection may be broken in the middle of a call; the JVM ends with this process
        raise
    finally:
        if session is not None:
            session.stop()


@contextmanager
def _hushed(is_wanted: bool) -> Iterator[None]:
    """Disable logging: Py4J logs a long traceback for a Ctrl-C in the middle of a call."""
    before = logging.root.manager.disable
    if is_wanted:
        logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
