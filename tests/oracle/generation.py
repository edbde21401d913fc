"""Random scenarios: sources, epochs of changes, views that come and go, restarts."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.oracle.model import Change, Model, SourceSpec
from tests.oracle.queries import Draw, Relation, queries
from tests.oracle.scenario import Action, CreateView, DropView, Epoch, Restart, Scenario, Statement
from tests.oracle.values import FAMILIES, Kind, kinds, values

PARALLELISM = st.sampled_from([1, 2, 7])


@st.composite
def sources(draw: Draw) -> list[SourceSpec]:
    """Two to four sources that share two families of key columns, `k` and `j`."""
    families = [draw(st.sampled_from(FAMILIES)) for _ in range(2)]
    result = []
    for name in "abcd"[: draw(st.integers(2, 4))]:
        columns: dict[str, Kind] = {"k": draw(kinds(families[0])), "j": draw(kinds(families[1]))}
        for at in range(draw(st.integers(0, 2))):
            columns[f"{name}{at}"] = draw(kinds())
        kind = draw(st.sampled_from(["STREAM", "CHANGELOG", "CHANGELOG", "TABLE"]))
        key: tuple[str, ...] = ()
        order = None
        if kind == "TABLE":
            key = draw(st.sampled_from([("k",), ("j",), ("k", "j")]))
            others = [n for n in columns if n not in key and columns[n].family != "bytes"]
            order = draw(st.sampled_from([None, *others]))
        result.append(SourceSpec(name, kind, columns, key, order))
    return result


@st.composite
def epochs(draw: Draw, model: Model, size: int) -> Epoch:
    """Changes of one epoch, valid on the model's content, which they advance."""
    changes: list[Change] = []
    for _ in range(draw(st.integers(0, size))):
        spec = draw(st.sampled_from(list(model.specs.values())))
        row = {name: draw(values(kind, nullable=name not in spec.primary_key)) for name, kind in spec.columns.items()}
        present = model.rows(spec.name)
        if spec.kind == "STREAM" or draw(st.integers(0, 2)):
            if present and draw(st.integers(0, 4)) == 0:
                row = draw(st.sampled_from(present))
            change = Change(spec.name, row)
        elif spec.kind == "TABLE":
            change = Change(spec.name, row, -1)
        elif present:
            change = Change(spec.name, draw(st.sampled_from(present)), -1)
        else:
            continue
        changes.append(change)
        if spec.kind != "TABLE":
            model.apply([change])
    model.apply([change for change in changes if model.specs[change.source].kind == "TABLE"])
    return Epoch(tuple(changes))


@st.composite
def scenarios(draw: Draw, *, actions: int = 8, size: int = 12) -> Scenario:
    """A whole scenario. An index keeps every source alive, so that views made later see all of it."""
    specs = draw(sources())
    model = Model({spec.name: spec for spec in specs})
    known = [Relation(spec.name, spec.columns) for spec in specs]
    views: dict[str, Relation] = {}
    result: list[Action] = [Statement(f"CREATE INDEX keep_{spec.name} ON {spec.name} (k)") for spec in specs]
    made = 0
    for at in range(draw(st.integers(2, actions))):
        choice = "view" if at == 0 else draw(st.sampled_from(["epoch"] * 5 + ["view", "drop", "restart"]))
        if choice == "epoch":
            result.append(draw(epochs(model, size)))
        elif choice == "restart":
            result.append(Restart(draw(PARALLELISM)))
        elif choice == "view":
            query = draw(queries([*known, *views.values()]))
            name = f"v{made}"
            made += 1
            views[name] = Relation(name, query.columns)
            result.append(CreateView(name, query.text))
        elif views:
            name = list(views)[-1]
            del views[name]
            result.append(DropView(name))
    result.append(draw(epochs(model, size)))
    history = draw(st.sampled_from([10_000, 10_000, 3, 1]))
    return Scenario(tuple(specs), tuple(result), draw(PARALLELISM), history)
