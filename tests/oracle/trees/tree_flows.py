"""Random flows for random trees: sources, epochs of changes, views made before and after data, restarts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from tests.oracle.model import Change, Model, SourceSpec
from tests.oracle.scenario import Action, CreateView, Epoch, Restart, Scenario, Select
from tests.oracle.trees.syntax import OURS, THEIRS, Node
from tests.oracle.trees.tree_inputs import Query, Relation
from tests.oracle.trees.tree_queries import Trees
from tests.oracle.trees.tree_terms import Dice
from tests.oracle.values import Kind

TREES = 10
LONGEST = 700
KINDS = {
    "integer": (Kind("INT", "integer", (0, 1, 2, 3, -1)), Kind("BIGINT", "integer", (0, 1, 2, 4))),
    "text": (Kind("STRING", "text", ("", "a", "b", "ab", "B")),),
    "float": (Kind("DOUBLE", "float", (0.5, -1.5, 2.0, 0.25)),),
    "date": (Kind("DATE", "date", (date(2024, 2, 29), date(2024, 3, 1), date(1970, 1, 1))),),
    "truth": (Kind("BOOLEAN", "truth", (True, False)),),
    "list": (Kind("ARRAY<INT>", "list", ([], [0], [1, None], [2, 2, 1])),),
}


@dataclass(frozen=True)
class TreeFlow:
    """A scenario whose queries are trees. The texts of its views are made from `trees`."""

    specs: tuple[SourceSpec, ...]
    actions: tuple[Action, ...]
    trees: Mapping[str, Node]
    parallelism: int

    @property
    def scenario(self) -> Scenario:
        """The scenario to play."""
        actions = []
        for action in self.actions:
            if isinstance(action, CreateView):
                tree = self.trees[action.name]
                action = CreateView(action.name, tree.text(OURS), tree.text(THEIRS))
            elif isinstance(action, Select):
                tree = self.trees[action.query]
                action = Select(tree.text(OURS), tree.text(THEIRS))
            actions.append(action)
        return Scenario(self.specs, tuple(actions), self.parallelism)


def flow(seed: int, trees: int = TREES) -> TreeFlow:
    """The flow of a seed."""
    dice = Dice(seed)
    specs = _sources(dice)
    model = Model({spec.name: spec for spec in specs})
    known = [Relation(spec.name, {name: kind.family for name, kind in spec.columns.items()}) for spec in specs]
    made: dict[str, Node] = {}
    actions: list[Action] = [_epoch(dice, model, 30)] if dice.chance(0.3) else []
    for number in range(trees):
        query = _tree(dice, known)
        name = f"v{number}"
        made[name] = query.node
        is_view = dice.chance(0.93)
        actions.append(CreateView(name, "") if is_view else Select(name))
        if is_view and dice.chance(0.2):
            known.append(Relation(name, query.columns))
        if number == trees // 2:
            actions.append(_epoch(dice, model, 30))
    actions += [_epoch(dice, model, 10), Restart(dice.choice((1, 2, 3))), _epoch(dice, model, 10)]
    return TreeFlow(tuple(specs), tuple(actions), made, dice.choice((1, 1, 2, 3)))


def _tree(dice: Dice, known: Sequence[Relation]) -> Query:
    """A tree whose text is not too long: the time to plan it grows with that."""
    while True:
        query = Trees(dice, list(known)).query(None, (), dice.choice((0, 1, 1, 1, 2)))
        if len(query.node.text()) <= LONGEST:
            return query


def _sources(dice: Dice) -> list[SourceSpec]:
    """A stream, a changelog, two tables with keys; each with an integer `k` and columns of other families."""
    integer = KINDS["integer"]
    result = []
    for name, kind, families in (
        ("a", "CHANGELOG", ("integer", "text", "date", "list")),
        ("b", "STREAM", ("integer", "float", "truth")),
        ("c", "TABLE", ("integer", "text", "float")),
        ("d", "TABLE", ("text", "integer", "date")),
    ):
        columns = {"k": dice.choice(integer)}
        columns |= {f"{name}{at}": dice.choice(KINDS[family]) for at, family in enumerate(families)}
        key = {"c": ("k",), "d": ("k", "d0")}.get(name, ())
        order = "d1" if name == "d" and dice.chance(0.3) else None
        result.append(SourceSpec(name, kind, columns, key, order))
    return result


def _epoch(dice: Dice, model: Model, size: int) -> Epoch:
    """Changes that are valid on the content of the model, which they advance."""
    changes: list[Change] = []
    specs = list(model.specs.values())
    for _ in range(dice.randint(size // 2, size)):
        spec = dice.choice(specs)
        row = {name: _value(dice, kind, name in spec.primary_key) for name, kind in spec.columns.items()}
        present = model.rows(spec.name)
        change = Change(spec.name, row)
        if spec.kind == "TABLE":
            if present and dice.chance(0.3):
                change = Change(spec.name, dice.choice(present), -1)
        elif present and dice.chance(0.35):
            sign = -1 if spec.kind == "CHANGELOG" and dice.chance(0.7) else 1
            change = Change(spec.name, dice.choice(present), sign)
        changes.append(change)
        if spec.kind != "TABLE":
            model.apply([change])
    model.apply([change for change in changes if model.specs[change.source].kind == "TABLE"])
    return Epoch(tuple(changes))


def _value(dice: Dice, kind: Kind, is_key: bool) -> object:
    return None if not is_key and dice.chance(0.15) else dice.choice(kind.values)


def without(flow: TreeFlow, place: int) -> TreeFlow:
    """The flow without one action."""
    return replace(flow, actions=flow.actions[:place] + flow.actions[place + 1 :])
