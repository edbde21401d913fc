"""Where the world takes the place of what the code gets from the machine: clocks, names, tasks, files, constants."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow.fs as pafs

from rejoinder import planner
from rejoinder.connectors import delivery
from rejoinder.connectors.files import reading
from rejoinder.connectors.files import target as file_sink
from rejoinder.engine import collector
from rejoinder.engine import engine as engine_module
from rejoinder.engine.hydration import redefinition
from rejoinder.formats import file_signatures
from rejoinder.host.entropy import drawn_from
from rejoinder.runtime.steps import arrange, emit
from rejoinder.state import timeline
from rejoinder.store.commits import file_log
from rejoinder.store.runs import spine
from rejoinder.testing import driver as driver_module
from rejoinder.testing import file_sources as input_files
from tests.simulation import caching
from tests.simulation.executor import SimulatedExecutor, SimulatedHost

if TYPE_CHECKING:
    from tests.simulation.world import World


@contextmanager
def in_place(world: World) -> Iterator[None]:
    """Put the world in place."""

    def now() -> float:
        return (world.clock.now if world.current is None else world.clock.read(world.current.name)) / 1000

    def open_sink(path: str) -> tuple[Any, str]:
        return pafs.PyFileSystem(world.folder), path.removeprefix("sim://")

    def open_input(path: str) -> tuple[Any, str]:
        return pafs.PyFileSystem(world.inputs), path.removeprefix("file:")

    wanted = world.knobs
    with ExitStack() as stack:

        def put(module: Any, name: str, value: Any) -> None:
            stack.enter_context(mock.patch.object(module, name, value))

        stack.enter_context(drawn_from(world.names.randbytes))
        put(time, "time", now)
        put(time, "time_ns", lambda: int(now() * 1000) * 1_000_000)
        put(time, "clock_gettime_ns", lambda _: world.clock.now * 1_000_000)
        put(file_sink, "open_path", open_sink)
        put(reading, "open_path", open_input)
        put(input_files, "os", world.inputs)
        put(file_signatures, "os", world.inputs)
        put(driver_module, "LocalExecutor", lambda _check: SimulatedExecutor(lambda: world.current))
        put(driver_module, "LocalHost", lambda: SimulatedHost(lambda: world.current))
        put(engine_module, "KEEP_VERSIONS", wanted.keep_versions)
        put(collector, "KEEP_VERSIONS", wanted.keep_versions)
        put(engine_module, "plan", caching.plan)
        put(redefinition, "plan", caching.plan)
        put(planner, "bind_view", caching.bind_view)
        put(timeline, "BLOCK", wanted.timeline_block)
        put(delivery, "PART_ROWS", wanted.part_rows)
        put(file_log, "RECENT", wanted.recent_files)
        if wanted.small_spines:
            put(spine, "SMALLEST_LEVEL_ROWS", 2)
            put(arrange, "FAN", 2)
            put(emit, "CHANGELOG_FAN", 2)
        if world.device is not None:
            stack.enter_context(world.device.recording())
        yield
