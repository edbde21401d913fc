"""The name of an output column that has no alias: what Spark would generate, where that is certain."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pyarrow as pa
from sqlglot import exp

from rejoinder import errors
from rejoinder.sql.functions.aggregates.aggregate_registry import aggregate_of, argument_nodes
from rejoinder.sql.functions.window_names import window_name, with_converted_distances
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types

SUBQUERY = "subquery name"
"""In the meta of a column that stands for a subquery: Spark's name of the subquery, or None."""
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "AND",
    exp.Or: "OR",
}

_PLAIN_NUMBER = re.compile(r"\d+|(0|[1-9]\d*)\.\d+")
_DEFAULTS: dict[str, tuple[str, ...]] = {
    "percentile": ("", "", "1"),
    "approx_percentile": ("", "", "10000"),
    "percentile_approx": ("", "", "10000"),
    "listagg": ("", "NULL"),
    "string_agg": ("", "NULL"),
}


def output_name(node: exp.Expr, type_of: Callable[[exp.Expr], pa.DataType | None] | None = None) -> str:
    """Give the alias, or the name that Spark would generate. Raises `Unsupported` where that name is not certain.

    `type_of` gives the type of an operand, None if it has none: Spark names sums of dates and timestamps, and frames
    with converted distances, otherwise. Without it, such a name is not certain.
    """
    if isinstance(node, exp.Alias | exp.Column) and SUBQUERY not in node.meta:
        return node.output_name
    if isinstance(node, exp.Dot) and _is_path(node):
        return str(node.expression.name)
    if isinstance(node, exp.Anonymous) and node.name.lower() == "window":
        return "window"
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Column) and not _is_call(node):
        # Spark names a cast after its column, unless it is part of something larger.
        return node.this.output_name
    operands = [operand for total in node.find_all(exp.Add, exp.Sub) for operand in (total.this, total.expression)]
    if type_of is None:
        name = None if operands or node.find(exp.WindowSpec) else _generated(node)
    else:
        uncertain = any(_is_time(operand, type_of) for operand in operands)
        name = None if uncertain else _generated(with_converted_distances(node, type_of))
    if name is None:
        raise errors.Unsupported(
            f"`{text_of(node)}` needs a name",
            detail="the name that Spark would generate for it is not supported",
            hint=f"write `{text_of(node)} AS name`",
        )
    return name


def subquery_name(form: str, values: Sequence[exp.Expr], outer: Sequence[str]) -> str | None:
    """Give Spark's name of a subquery in one of its forms; None where it has none.

    `outer` are the columns of the outer query that it reads, each as often as it is written.
    """
    read = f"({', '.join(outer)})"
    if form == "scalar":
        return f"scalarsubquery{read}"
    if form == "exists":
        return f"exists{read}"
    names = [_generated(value) for value in values]
    if form != "in" or None in names:
        return None
    if len(names) == 1:
        return f"({names[0]} IN (listquery{read}))"
    fields = (
        f"'{value.name if isinstance(value, exp.Column) else f'col{place}'}', {name}"
        for place, (value, name) in enumerate(zip(values, names, strict=True), 1)
    )
    return f"(named_struct({', '.join(fields)}) IN (listquery{read}))"


def _is_time(node: exp.Expr, type_of: Callable[[exp.Expr], pa.DataType | None]) -> bool:
    """Whether an operand is a time, or may be one."""
    kind = type_of(node)
    if kind is None:
        return isinstance(node, exp.Interval) or node.find(exp.Window) is not None
    return spark_types.is_datetime(kind)


def _is_call(node: exp.Expr) -> bool:
    """Say whether a node was written as a function: sqlglot keeps the place of its name, and not of an operator's."""
    return "start" in node.meta


def _is_path(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) or (isinstance(node, exp.Dot) and _is_path(node.this))


def _generated(node: exp.Expr) -> str | None:
    if isinstance(node, exp.Paren):
        return _generated(node.this)
    if SUBQUERY in node.meta:
        name: str | None = node.meta[SUBQUERY]
        return name
    if isinstance(node, exp.Column):
        # A field of a struct and a column with a qualifier look alike, and Spark writes them differently.
        return None if node.table else node.name
    if isinstance(node, exp.Literal):
        return node.this if node.is_string or _PLAIN_NUMBER.fullmatch(node.this) else None
    if isinstance(node, exp.Boolean | exp.Null):
        return "NULL" if isinstance(node, exp.Null) else str(node.this).lower()
    if isinstance(node, exp.Window):
        return window_name(node, _generated)
    if isinstance(node, exp.WithinGroup):
        return _generated_within_group(node)
    if isinstance(node, exp.Filter):
        parts = _generated(node.this), _generated(node.expression.this)
        return None if None in parts else f"{parts[0]} FILTER (WHERE {parts[1]})"
    aggregate = aggregate_of(node)
    if aggregate is not None:
        # Spark keeps the alias that was written
        name = node.name.lower() if isinstance(node, exp.Anonymous) else aggregate.name
        name = "any" if isinstance(node, exp.Any) else name
        return _generated_aggregate(name, node)
    if isinstance(node, exp.Grouping | exp.GroupingId):
        arguments = [_generated(part) for part in node.expressions]
        name = "grouping" if isinstance(node, exp.Grouping) else "grouping_id"
        return None if None in arguments else f"{name}({', '.join(map(str, arguments))})"
    if _is_call(node):
        return None
    if type(node) in _OPERATORS:
        return _in_brackets(node.this, _OPERATORS[type(node)], node.expression)
    if isinstance(node, exp.NEQ):
        return _around("(NOT {})", _in_brackets(node.this, "=", node.expression))
    return _generated_form(node)


def _generated_form(node: exp.Expr) -> str | None:
    match node:
        case exp.Not(this=exp.Is()):
            return None  # IS NOT NULL, or NOT … IS NULL: sqlglot does not say
        case exp.Not():
            return _around("(NOT {})", _generated(node.this))
        case exp.Is(expression=exp.Null()):
            return _around("({} IS NULL)", _generated(node.this))
        case exp.Neg(this=exp.Literal()):
            return _around("-{}", _generated(node.this))
        case exp.Neg():
            return _around("(- {})", _generated(node.this))
        case exp.Between():
            parts = [_generated(node.args[name]) for name in ("this", "low", "high")]
            return None if None in parts else f"between({', '.join(map(str, parts))})"
        case exp.In():
            parts = [_generated(part) for part in (node.this, *node.expressions)]
            return (
                None if None in parts or not node.expressions else f"({parts[0]} IN ({', '.join(map(str, parts[1:]))}))"
            )
        case exp.TryCast() if "format" in node.args:
            verb = "TRY_CAST" if node.args.get("safe") else "CAST"
            kind = spark_types.spark_name(spark_types.arrow_type(node.args["to"])).upper()
            return _around(f"{verb}({{}} AS {kind})", _generated(node.this))
        case exp.Case(this=None):
            return _generated_case(node)
    return None


def _generated_aggregate(name: str, node: exp.Expr) -> str | None:
    if isinstance(node.this, exp.Star):
        return "count(1)"
    listed = argument_nodes(node)
    distinct = isinstance(listed[0], exp.Distinct)
    if isinstance(listed[-1], exp.Order):
        return None
    if distinct:
        listed = [*listed[0].expressions, *listed[1:]]
    parts = [_generated(part) for part in listed]
    name = "collect_list" if name == "array_agg" else name
    if len(parts) < len(_DEFAULTS.get(name, ())):  # Spark writes arguments that were left out
        parts += _DEFAULTS[name][len(parts) :]
    return None if None in parts else f"{name}({'DISTINCT ' if distinct else ''}{', '.join(map(str, parts))})"


def _generated_within_group(node: exp.WithinGroup) -> str | None:
    """The name of a percentile. Spark's names of others depend on the order in ways of their own."""
    inner, order = node.this, node.expression.expressions
    name = inner.name.lower() if isinstance(inner, exp.Anonymous) else ""
    if name not in ("percentile_cont", "percentile_disc") or len(order) != 1:
        return None
    direction = " DESC" if order[0].args.get("desc") else ""
    parts = [*(_generated(part) for part in inner.expressions), _generated(order[0].this)]
    return None if None in parts else f"{name}({parts[0]}) WITHIN GROUP (ORDER BY {parts[1]}{direction})"


def _generated_case(node: exp.Case) -> str | None:
    parts: list[str | None] = ["CASE"]
    for branch in node.args["ifs"]:
        parts += ["WHEN", _generated(branch.this), "THEN", _generated(branch.args["true"])]
    if node.args.get("default") is not None:
        parts += ["ELSE", _generated(node.args["default"])]
    return None if None in parts else " ".join([str(part) for part in parts] + ["END"])


def _in_brackets(left: exp.Expr, sign: str, right: exp.Expr) -> str | None:
    first, second = _generated(left), _generated(right)
    return None if first is None or second is None else f"({first} {sign} {second})"


def _around(template: str, inner: str | None) -> str | None:
    return None if inner is None else template.format(inner)
