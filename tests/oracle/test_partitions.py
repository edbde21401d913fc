"""Random partitions, idle messages and explicit watermarks: the engine emits what the coalescer of the core does."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from rejoinder.errors import WatermarkRegress
from rejoinder.testing import Driver
from rejoinder.watermarks.coalescer import WatermarkCoalescer
from tests.oracle.budget import budget

DELAYS = {"t": 3, "u": None}
PARTITIONS = 3


@dataclass(frozen=True)
class Happening:
    """One epoch: what happens at a partition. `crash`: the flow is restarted after it, or before it is stepped."""

    kind: str
    partition: int
    column: str
    time: int
    crash: str


happenings = st.lists(
    st.builds(
        Happening,
        st.sampled_from(["watermark", "watermark", "rows", "rows", "idle"]),
        st.integers(0, PARTITIONS - 1),
        st.sampled_from(sorted(DELAYS)),
        st.integers(0, 30),
        st.sampled_from(["no", "no", "after", "before"]),
    ),
    max_size=15,
)


class Model:
    """The coalescer, and the last watermark of each partition."""

    def __init__(self) -> None:
        self.merged = WatermarkCoalescer(PARTITIONS)
        self.watermarks: dict[tuple[int, str], int] = {}

    def happen(self, each: Happening) -> None:
        if each.kind == "idle":
            self.merged.idle(each.partition)
            return
        self.merged.event(each.partition)
        delay = DELAYS[each.column]
        if each.kind == "watermark":
            self.watermarks[each.partition, each.column] = each.time
            self.reach(each, each.time)
        elif delay is not None:
            self.reach(each, each.time - delay)

    def reach(self, each: Happening, value: int) -> None:
        key = sorted(DELAYS).index(each.column)
        last = self.merged.value_of(each.partition, key)
        if last is None or value > last:
            self.merged.watermark(each.partition, key, value)


@budget(5, deep=40)
@given(happenings)
def test_the_engine_emits_what_the_coalescer_does(steps: list[Happening]) -> None:
    driver, model = Driver(), Model()
    columns = ", ".join(
        f"{name} INT, WATERMARK {name}" + ("" if delay is None else f" DELAY OF {delay}")
        for name, delay in DELAYS.items()
    )
    driver.sql(f"CREATE STREAM s (p INT, {columns}) OPTIONS (partition_by 'p', partitions '{PARTITIONS}')")
    driver.sql("CREATE VIEW v AS SELECT t FROM s EMIT WHEN WATERMARK PAST t")
    for each in steps:
        last = model.watermarks.get((each.partition, each.column))
        if each.kind == "watermark" and last is not None and each.time <= last:
            try:
                driver.watermark("s", each.time, each.column, each.partition)
                raise AssertionError(f"{each} does not rise")
            except WatermarkRegress:
                continue
        if each.kind == "watermark":
            driver.watermark("s", each.time, each.column, each.partition)
        elif each.kind == "rows":
            driver.insert("s", {"p": each.partition, each.column: each.time})
        else:
            driver.idle("s", each.partition)
        if each.crash == "before":
            driver.restart()  # nothing of this has happened
        else:
            model.happen(each)
        driver.step()
        if each.crash == "after":
            driver.restart(parallelism=2)
        known = driver._engine.version.watermarks
        for key, column in enumerate(sorted(DELAYS)):
            assert known.of("s", column) == model.merged.value(key), each
        assert known.is_idle("s") == model.merged.is_idle
