"""Values that rise with a column: bounds of the column are bounds of the value."""

from __future__ import annotations

import pytest

from rejoinder.kernels.rising import Rising, Step, floor, shift, stepped

CASES = {
    "a time": (),
    "moved": shift(7),
    "a window": floor(5),
    "its end": (*floor(5), *shift(5)),
    "a window of windows": (*floor(5), *floor(15)),
    "from days to hours": (Step(unit=24),),
}


@pytest.mark.parametrize("steps", CASES.values(), ids=list(CASES))
def test_a_larger_value_has_no_smaller_result(steps: tuple[Step, ...]) -> None:
    results = [stepped(value, steps) for value in range(-40, 40)]
    assert results == sorted(results)


@pytest.mark.parametrize("steps", CASES.values(), ids=list(CASES))
def test_the_span_holds_every_distance(steps: tuple[Step, ...]) -> None:
    span = Rising("t", steps).span
    distances = {stepped(value, steps) - value for value in range(-40, 40)}
    if span is None:
        assert len(distances) > 40, "another unit"
    else:
        assert span[0] <= min(distances) and max(distances) <= span[1]
    assert Rising("t", steps, exact=False).span is None


def test_one_on_another() -> None:
    outer, inner = Rising("w", floor(15)), Rising("t", floor(5))
    assert outer.on(inner) == Rising("t", (*floor(5), *floor(15)))
    assert not outer.on(Rising("t", exact=False)).exact
