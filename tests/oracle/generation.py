"""Random scenarios: sources, epochs of changes, views that come and go, restarts."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import strategies as st

from tests.oracle.model import Change, Model, SourceSpec
from tests.oracle.queries import PAYLOAD_ONLY, Draw, Relation, queries
from tests.oracle.scenario import (
    Action,
    AlterSource,
    CreateView,
    DropView,
    Epoch,
    RenameView,
    ReplaceView,
    Restart,
    Scenario,
    Select,
    Statement,
)
from tests.oracle.values import FAMILIES, KINDS, Kind, kinds, values

PARALLELISM = st.sampled_from([1, 2, 7])
CHOICES = ("epoch",) * 5 + ("view", "view", "drop view", "restart", "index", "drop index", "query")
EDITS = (*("epoch",) * 3, "view", "drop view", "restart", "index", *("replace",) * 5, "rename")
ALTERATIONS = (*("epoch",) * 3, "view", "view", "drop view", "restart", "index", "replace", *("alter",) * 5)
_WIDER = {"TINYINT": "SMALLINT", "SMALLINT": "INT", "INT": "BIGINT", "FLOAT": "DOUBLE"}


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
            others = [n for n in columns if n not in key and columns[n].family not in PAYLOAD_ONLY]
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
def replacements(draw: Draw, view: Relation) -> Relation:
    """Another query with the columns of a view: fewer rows, more rows, or each row once."""
    at = draw(st.sampled_from(list(view.columns)))
    forms = ["SELECT * FROM ({0}) q", f"SELECT * FROM ({{0}}) q WHERE {at} IS NOT NULL"]
    forms += [f"SELECT * FROM ({{0}}) q WHERE {at} IS NULL", "SELECT * FROM ({0}) q UNION ALL SELECT * FROM ({0}) r"]
    form = draw(st.sampled_from(forms))
    return Relation(form.format(view.text), view.columns, form.format(view.oracle))


@st.composite
def alterations(draw: Draw, spec: SourceSpec, at: int, unread: frozenset[str]) -> AlterSource:
    """Another column, or one of those that no view reads goes, gets another name or a wider type."""
    columns, free = dict(spec.columns), sorted(unread.intersection(spec.columns).difference(spec.primary_key))
    free = [name for name in free if name not in ("k", "j", spec.order)]  # queries join by `k` and `j`
    forms = ["add"] + (["drop", "rename", "widen"] if free else [])
    form, start = draw(st.sampled_from(forms)), f"ALTER {spec.kind} {spec.name}"
    name = draw(st.sampled_from(free)) if free else ""
    if form == "widen" and columns[name].sql in _WIDER:
        wider = _WIDER[columns[name].sql]
        columns[name] = next(kind for kind in KINDS if kind.sql == wider)
        return AlterSource(f"{start} ALTER COLUMN {name} TYPE {wider}", replace(spec, columns=columns))
    if form == "drop":
        del columns[name]
        return AlterSource(f"{start} DROP COLUMN {name} PURGE", replace(spec, columns=columns))
    if form == "rename":
        renamed = {f"n{at}" if old == name else old: kind for old, kind in columns.items()}
        return AlterSource(f"{start} RENAME COLUMN {name} TO n{at}", replace(spec, columns=renamed))
    columns[f"n{at}"] = next(kind for kind in KINDS if kind.sql == "BIGINT")
    default = draw(st.sampled_from(["", " DEFAULT 3"]))
    return AlterSource(f"{start} ADD COLUMN n{at} BIGINT{default}", replace(spec, columns=columns))


@st.composite
def scenarios(draw: Draw, *, actions: int = 9, size: int = 12, choices: tuple[str, ...] = CHOICES) -> Scenario:
    """A whole scenario."""
    specs = draw(sources())
    model = Model({spec.name: spec for spec in specs})
    known = {spec.name: Relation(spec.name, spec.columns) for spec in specs}
    views: dict[str, Relation] = {}
    indexes: dict[str, str] = {}
    result: list[Action] = []
    for at in range(draw(st.integers(2, actions))):
        choice = draw(st.sampled_from(choices)) if at else draw(st.sampled_from(["epoch", "view", "view"]))
        if choice == "epoch":
            result.append(draw(epochs(model, size)))
        elif choice == "restart":
            result.append(Restart(draw(PARALLELISM)))
        elif choice == "view":
            query = draw(queries(list(known.values())))
            name = f"v{at}"
            views[name] = query
            known[name] = Relation(name, query.columns)
            result.append(CreateView(name, query.text, query.oracle))
        elif choice == "index":
            relation = draw(st.sampled_from(list(known.values())))
            columns = draw(st.lists(st.sampled_from(list(relation.columns)), min_size=1, max_size=2, unique=True))
            indexes[f"i{at}"] = relation.text
            result.append(Statement(f"CREATE INDEX i{at} ON {relation.text} ({', '.join(columns)})"))
        elif choice == "query":
            query = draw(queries(list(known.values())))
            result.append(Select(query.text, query.oracle))
        elif choice == "drop index" and indexes:
            name = draw(st.sampled_from(list(indexes)))
            del indexes[name]
            result.append(Statement(f"DROP INDEX {name}"))
        elif choice == "replace" and views:
            name = draw(st.sampled_from(list(views)))
            if name == list(views)[-1] and draw(st.booleans()):  # no view reads it: its columns may change
                others = [relation for relation in known.values() if relation.text != name]
                query = draw(queries(others))
                indexed = [index for index, relation in indexes.items() if relation == name]
                result += [Statement(f"DROP INDEX {index}") for index in indexed]
                indexes = {index: relation for index, relation in indexes.items() if relation != name}
            else:
                query = draw(replacements(views[name]))
            views[name], known[name] = query, Relation(name, query.columns)
            result.append(ReplaceView(name, query.text, query.oracle))
        elif choice == "alter":
            spec = draw(st.sampled_from(list(model.specs.values())))
            statements = [action.sql for action in result if isinstance(action, Statement)]
            named = " ".join([*(view.text for view in views.values()), *statements])
            unread = frozenset(name for name in spec.columns if not re.search(rf"\b{name}\b", named))
            altered = draw(alterations(spec, at, unread))
            model.alter(altered.spec, altered.row)
            known[spec.name] = Relation(spec.name, altered.spec.columns)
            result.append(altered)
        elif choice == "rename" and views:
            name, new_name = list(views)[-1], f"r{at}"
            views[new_name], known[new_name] = views.pop(name), Relation(new_name, known.pop(name).columns)
            indexes = {index: new_name if relation == name else relation for index, relation in indexes.items()}
            result.append(RenameView(name, new_name))
        elif choice == "drop view" and views:
            name, _ = views.popitem()
            del known[name]
            indexes = {index: relation for index, relation in indexes.items() if relation != name}
            result.append(DropView(name))
    result.append(draw(epochs(model, size)))
    history = draw(st.sampled_from([10_000, 10_000, 3, 1]))
    return Scenario(tuple(specs), tuple(result), draw(PARALLELISM), history)
