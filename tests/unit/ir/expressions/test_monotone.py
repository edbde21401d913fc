"""Values that rise with a column: bounds of the column are bounds of the value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.ir.expressions.monotone import Monotone, Step, apply_steps, floor, inverse, shift, simplified

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
    results = [apply_steps(value, steps) for value in range(-40, 40)]
    assert results == sorted(results)


@pytest.mark.parametrize("steps", CASES.values(), ids=list(CASES))
def test_the_span_holds_every_distance(steps: tuple[Step, ...]) -> None:
    span = Monotone("t", steps).span
    distances = {apply_steps(value, steps) - value for value in range(-40, 40)}
    if span is None:
        assert len(distances) > 40, "another unit"
    else:
        assert span[0] <= min(distances) and max(distances) <= span[1]
    assert Monotone("t", steps, more=None).span is None


def test_one_on_another() -> None:
    outer, inner = Monotone("w", floor(15)), Monotone("t", floor(5))
    assert outer.on(inner) == Monotone("t", (*floor(5), *floor(15)))
    assert outer.on(Monotone("t", more=None)).more is None


units = st.sampled_from([1, 1, 2, 5, 6])
some_steps = st.lists(st.builds(Step, st.integers(-30, 30), units, units), max_size=4)


@given(some_steps)
def test_fewer_steps_have_the_same_results(steps: list[Step]) -> None:
    fewer = simplified(steps)
    assert [apply_steps(value, fewer) for value in range(-70, 70)] == [
        apply_steps(value, steps) for value in range(-70, 70)
    ]


@given(some_steps, st.integers(-200, 200))
def test_the_inverse_gives_the_least_value_with_a_result(steps: list[Step], result: int) -> None:
    least = apply_steps(result, inverse(steps))
    assert apply_steps(least, steps) >= result > apply_steps(least - 1, steps)


@given(some_steps, some_steps, st.integers(0, 7), st.integers(0, 7), st.integers(-70, 70))
def test_a_column_is_not_below_the_least_that_gives_its_value(
    steps: list[Step], then: list[Step], more: int, most: int, column: int
) -> None:
    value = apply_steps(apply_steps(column, steps) + min(more, most), then) + 2
    turned = Monotone("t", tuple(steps), most).then(*then, more=2).least()
    assert turned is not None and apply_steps(value, turned) <= column
    assert Monotone("t", tuple(steps), None).then(*then).least() is None


def test_division_towards_zero_is_at_most_one_more() -> None:
    assert {int(value / 10) - apply_steps(value, [Step(width=10)]) for value in range(-40, 40)} == {0, 1}
