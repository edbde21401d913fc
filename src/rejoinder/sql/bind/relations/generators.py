"""Generators: functions that make several rows of one, in SELECT, in LATERAL VIEW and in FROM.

    explode(array | map), posexplode(array | map), inline(array of structs), stack(n, value, …), and *_outer;
    table functions that the user declared

A generator becomes an `Expand` over the list of its elements, and columns that are taken out of an element:

    SELECT id, posexplode(tags) AS (n, tag) FROM t

    SELECT id, e.pos AS n, e.col AS tag FROM (SELECT *, explode(<structs of pos and col>) AS e FROM t)

The outer forms have one element, NULL, where there would be none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from rejoinder.errors import AmbiguousName, InvalidSql, PlanningError, Unsupported
from rejoinder.ir.expressions import nodes
from rejoinder.ir.expressions.expression import Expression
from rejoinder.ir.identities import column_id, column_part, column_text
from rejoinder.ir.logical import Expand, Node, Project
from rejoinder.ir.user_functions import UserFunction
from rejoinder.sql.bind.scope import Column, Scope
from rejoinder.sql.functions.expression_compiler import compile_expression
from rejoinder.sql.functions.logic import together
from rejoinder.sql.functions.user_calls import arguments_of, called, user_function
from rejoinder.sql.parse.clauses import MARKS, text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Term, mismatch
from rejoinder.sql.types.terms import call as function_call

_NODES: dict[type[exp.Expr], str] = {
    exp.Explode: "explode",
    exp.ExplodeOuter: "explode_outer",
    exp.Posexplode: "posexplode",
    exp.PosexplodeOuter: "posexplode_outer",
    exp.Inline: "inline",
    exp.Stack: "stack",
}
GENERATORS = (
    "explode",
    "posexplode",
    "inline",
    "stack",
    "json_tuple",
    "explode_outer",
    "posexplode_outer",
    "inline_outer",
)
_OUTER = "_outer"
_QUALIFIER = f"generator{MARKS[0]}"
"""The relation of a generator's columns in a SELECT list, which nobody writes; its place in the list follows."""


@dataclass(frozen=True)
class _Elements:
    """What a generator makes of a row: a list, and the names of the columns of an element.

    The columns are the fields of an element, in order, or (`is_whole`) the element itself.
    """

    list: Term
    names: tuple[str, ...]
    is_whole: bool = False


def generator_name(node: exp.Expr | None) -> str | None:
    """The name of a generator that a node calls; None if it calls none."""
    if isinstance(node, exp.Anonymous):
        is_declared = user_function(node, "table") is not None
        return node.name.lower() if is_declared or node.name.lower() in GENERATORS else None
    if isinstance(node, exp.Explode) and not isinstance(node, exp.Posexplode | exp.Inline):
        name = type(node).__name__.strip("_")  # sqlglot has a class of its own for Spark's explode_outer
        return "explode_outer" if name == "ExplodeOuter" else "explode"
    return None if node is None else _NODES.get(type(node))


def is_lateral_generator(node: exp.Expr) -> bool:
    """Whether an item of FROM is LATERAL with a generator."""
    return isinstance(node, exp.Lateral) and generator_name(node.this) is not None


def bind_generator(
    root: Node, scope: Scope, node: exp.Expr, numbers: Iterator[int], *, outer: bool = False
) -> tuple[Node, Scope]:
    """Bind LATERAL VIEW [OUTER], or LATERAL in FROM: the rows with the columns of a generator."""
    call = node.this
    name = generator_name(call)
    if name is None:
        raise Unsupported(
            f"LATERAL VIEW of `{text_of(call)}` is not supported",
            detail=text_of(node),
            hint=f"generators: {', '.join(GENERATORS)}",
        )
    alias = node.args.get("alias")
    given = [i.name for i in alias.columns] if isinstance(alias, exp.TableAlias) else []
    qualifier = alias.name if isinstance(alias, exp.TableAlias) and alias.this is not None else ""
    outer = outer or bool(node.args.get("outer"))
    root, columns = _expanded(root, scope, call, name, numbers, given, qualifier, outer=outer)
    return root, scope.with_columns((*scope.columns, *columns))


def bind_generator_join(root: Node, scope: Scope, node: exp.Join, numbers: Iterator[int]) -> tuple[Node, Scope]:
    """Bind JOIN LATERAL explode(…): the rows of the left side, repeated. LEFT keeps rows without an element."""
    side, on = node.side.upper(), node.args.get("on")
    is_true = on is None or (isinstance(on, exp.Boolean) and on.this)
    if side not in ("", "LEFT") or not is_true or node.args.get("using"):
        raise Unsupported(
            "LATERAL with a generator takes CROSS, INNER or LEFT JOIN, and no condition",
            detail=text_of(node),
            hint="write … JOIN LATERAL explode(…) AS e(x), and conditions in WHERE",
        )
    return bind_generator(root, scope, node.this, numbers, outer=side == "LEFT")


def bind_selected(root: Node, scope: Scope, node: exp.Select, numbers: Iterator[int]) -> tuple[Node, Scope, exp.Select]:
    """Bind the generators of a SELECT list: the rows with their columns, and the list that takes them.

    The first generator repeats the rows, the second repeats the result, as LATERAL VIEWs in this order do. Items may
    use the columns of generators before them.
    """
    items: list[exp.Expr] = []
    generated: dict[str, list[exp.Expr]] = {}
    for listed in node.expressions:
        item = _with_generated(listed, generated, scope)
        call = called_generator(item)
        nested = next((inner for inner in _calls(item) if inner is not call), None)
        if nested is not None:
            raise Unsupported(
                f"`{text_of(nested)}` inside an expression is not supported",
                detail=f"in `{text_of(item)}`",
                hint="a generator is a column of its own: SELECT … FROM (SELECT explode(…) AS x FROM …)",
            )
        if call is None:
            items.append(item)
            continue
        name, given = generator_name(call) or "", [item.alias] if isinstance(item, exp.Alias) else []
        if isinstance(item, exp.Aliases):
            given = [identifier.name for identifier in item.expressions]
        qualifier = f"{_QUALIFIER}{len(items)}"
        root, columns = _expanded(root, scope, call, name, numbers, given, qualifier, outer=False)
        for c in columns:
            reference = exp.column(c.name, table=qualifier, quoted=True)
            items.append(exp.alias_(reference, c.name, quoted=True))
            generated.setdefault(c.name.lower(), []).append(reference)
        hidden = [Column(c.qualifier, c.name, c.id, c.type, hidden=True) for c in columns]
        scope = scope.with_columns((*scope.columns, *hidden))
    selected = node.copy()
    selected.set("expressions", [item.copy() for item in items])
    return root, scope, selected


def _with_generated(item: exp.Expr, generated: Mapping[str, Sequence[exp.Expr]], scope: Scope) -> exp.Expr:
    """An item in which the names of columns of earlier generators are qualified. A column of FROM comes first."""

    def qualified(part: exp.Expr) -> exp.Expr:
        if not isinstance(part, exp.Column) or part.table or part.name.lower() not in generated:
            return part
        if scope.knows(part) or part.find_ancestor(exp.Query) is not None:
            return part
        meant = generated[part.name.lower()]
        if len(meant) > 1:
            raise AmbiguousName(
                f"`{part.name}` is a column of {len(meant)} generators",
                detail=f"in `{text_of(item)}`",
                hint="give each a name of its own, with AS",
            )
        return meant[0].copy()

    return item.transform(qualified) if generated else item


def called_generator(item: exp.Expr) -> exp.Expr | None:
    """The call of a generator that an item of a SELECT list is; None if it is something else."""
    inner: exp.Expr = item.this if isinstance(item, exp.Alias | exp.Aliases) else item
    return inner if generator_name(inner) is not None else None


def _calls(item: exp.Expr) -> Iterator[exp.Expr]:
    """The generators of an item, without those of queries inside it."""
    for node in item.walk(prune=lambda inner: isinstance(inner, exp.Query)):
        if generator_name(node) is not None:
            yield node


def _expanded(
    root: Node,
    scope: Scope,
    call: exp.Expr,
    name: str,
    numbers: Iterator[int],
    given: Sequence[str],
    qualifier: str,
    *,
    outer: bool,
) -> tuple[Node, list[Column]]:
    """The rows repeated for a generator, and its columns."""
    elements = _elements(call, name, scope)
    if given and len(given) != len(elements.names):
        raise InvalidSql(
            f"{len(given)} names for the {len(elements.names)} columns of `{text_of(call)}`",
            detail=f"columns: {', '.join(elements.names)}",
            hint=f"name all of them: AS ({', '.join(elements.names)})"
            if len(elements.names) > 1
            else f"name one: AS {elements.names[0]}",
        )
    listed = elements.list
    if outer or (name in GENERATORS and name.endswith(_OUTER)):
        listed = function_call("elements_or_null", listed.type, listed, evaluation="all", nulls="never")
    number = next(numbers)
    # An identifier begins with the number of its input, by which conditions know the sides of a join.
    input_number = column_id(listed.node.columns[0]).input if listed.node.columns else number
    element = column_text(input_number, f"element/{number}")
    root = Expand(root, element, Expression(listed.node, f"element of {text_of(call)}"))
    term = Term(nodes.Column(element, listed.type.value_type))
    kept = {i: Expression(nodes.Column(i, kind), i) for i, kind in scope.carried().items()}
    columns = []
    for at, own in enumerate(elements.names):
        value = term
        if not elements.is_whole:
            value = field_at(term, at)
        identifier = column_part(element, at)
        kept[identifier] = Expression(value.node, given[at] if given else own)
        columns.append(Column(qualifier, given[at] if given else own, identifier, value.type))
    return Project(root, tuple(kept.items())), columns


def _elements(call: exp.Expr, name: str, scope: Scope) -> _Elements:
    declared = user_function(call, "table")
    if declared is not None:
        return _declared(call, declared, scope)
    name = name.removesuffix(_OUTER)
    if name == "stack":
        return _stacked(call, scope)
    if name == "json_tuple":
        return _json_fields(call, scope)
    arguments = call.expressions if isinstance(call, exp.Anonymous) else [call.this, *call.expressions]
    if len(arguments) != 1:
        fact = f"`{name}` takes one argument, not {len(arguments)}"
        raise InvalidSql(fact, detail=text_of(call), hint=f"write {name}(array)")
    term = Term(compile_expression(arguments[0], scope).node)
    kind = term.type
    if pa.types.is_map(kind) and name != "inline":
        fields = [pa.field("key", kind.key_type), pa.field("value", kind.item_type)]
        if name == "posexplode":
            return _structs("numbered_entries", [pa.field("pos", spark_types.INT), *fields], term)
        return _structs("map_entries", fields, term)
    if not pa.types.is_list(kind):
        wanted = "an array of structs" if name == "inline" else "an array or a map"
        hint = "take a column of type ARRAY or MAP" if name != "inline" else "explode takes any array"
        raise mismatch(call, f"`{name}` takes {wanted}, not {spark_types.spark_name(kind)}", hint)
    if name == "inline":
        if not pa.types.is_struct(kind.value_type):
            fact = f"`inline` takes an array of structs, not {spark_types.spark_name(kind)}"
            raise mismatch(call, fact, "explode takes any array")
        return _Elements(term, tuple(field.name for field in kind.value_type))
    if name == "explode":
        return _Elements(term, ("col",), is_whole=True)
    return _structs("numbered_elements", [pa.field("pos", spark_types.INT), pa.field("col", kind.value_type)], term)


def _declared(call: exp.Expr, function: UserFunction, scope: Scope) -> _Elements:
    """The rows that a table function of the user returns."""
    terms = arguments_of(lambda node: Term(compile_expression(node, scope).node), call, function)
    names = tuple(field.name for field in function.result)
    return _Elements(called(function, terms, spark_types.array_of(function.result)), names)


def _structs(function: str, fields: Sequence[pa.Field], term: Term) -> _Elements:
    """The list of structs that a function makes."""
    kind = spark_types.array_of(pa.struct(fields))
    return _Elements(function_call(function, kind, term, nulls="propagated"), tuple(field.name for field in fields))


def field_at(row: Term, place: int) -> Term:
    """A field of a struct."""
    field = row.type.field(place)
    return function_call("field", field.type, row, options=(field.name,))


def _stacked(call: exp.Expr, scope: Scope) -> _Elements:
    """The values of STACK(n, …) in n rows; missing ones at the end are NULL."""
    hint = "write stack(2, a, b, c, d): two rows of two columns"
    count, *values = call.expressions if isinstance(call, exp.Anonymous) else [call.this, *call.expressions]
    is_number = isinstance(count, exp.Literal) and not count.is_string and count.name.isdigit()
    if not is_number or int(count.name) < 1 or not values:
        raise InvalidSql(
            "the first argument of `stack` is a whole number, 1 or more, and values follow",
            detail=text_of(call),
            hint=hint,
        )
    rows = int(count.name)
    width = -(-len(values) // rows)
    terms = [Term(compile_expression(value, scope).node) for value in values]
    missing = Term(nodes.Literal(None, pa.null()))
    terms += [missing] * (rows * width - len(terms))
    for column in (terms[at::width] for at in range(width)):
        kinds = dict.fromkeys(spark_types.spark_name(term.type) for term in column if not term.is_null)
        if len(kinds) > 1:
            raise mismatch(call, f"`stack` puts {' and '.join(kinds)} into one column", "CAST them to one type")
    return list_of_rows([terms[at : at + width] for at in range(0, rows * width, width)], call, "col{}", first=0)


def _json_fields(call: exp.Expr, scope: Scope) -> _Elements:
    """The values of names in a JSON object, in one row."""
    text, *names = call.expressions or [None]
    if text is None or not names or not all(isinstance(name, exp.Literal) and name.is_string for name in names):
        raise InvalidSql(
            "`json_tuple` takes a text and the literal names of fields",
            detail=text_of(call),
            hint="write json_tuple(text, 'a', 'b')",
        )
    term = Term(compile_expression(text, scope).node)
    if term.type != spark_types.STRING:
        raise mismatch(call, f"a text is needed, not {spark_types.spark_name(term.type)}", "CAST it to STRING")
    fields = [function_call("json_tuple", spark_types.STRING, term, options=(name.this,)) for name in names]
    return list_of_rows([fields], call, "c{}", first=0)


def list_of_rows(rows: Sequence[Sequence[Term]], node: exp.Expr, name: str, *, first: int) -> _Elements:
    """A list of structs; each column has the common type of its values. Raises `TypeMismatch`."""
    width = len(rows[0])
    columns = []
    for at in range(width):
        try:
            terms, kind = together([row[at] for row in rows], node)
        except PlanningError as failure:
            raise mismatch(node, f"column {at + 1}: {failure.fact}", failure.hint) from failure
        if pa.types.is_null(kind):
            raise mismatch(node, f"column {at + 1} has nothing but NULL, and so no type", "CAST one of them")
        columns.append((terms, kind))
    names = tuple(name.format(at + first) for at in range(width))
    kind = pa.struct([pa.field(own, kind) for own, (_, kind) in zip(names, columns, strict=True)])
    rows_made = [
        function_call("struct", kind, *(columns[at][0][row] for at in range(width)), evaluation="all", nulls="never")
        for row in range(len(rows))
    ]
    listed = function_call("array", spark_types.array_of(kind), *rows_made, evaluation="all", nulls="never")
    return _Elements(listed, names)
