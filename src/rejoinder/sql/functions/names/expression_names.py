"""The text that Spark makes of an expression, to name a column that has no alias.

Operators have parentheses around them, strings no quotes, columns no qualifiers, functions the name that was written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from rejoinder.sql.functions.aggregates.aggregate_registry import aggregate_of, argument_nodes, sketch_node
from rejoinder.sql.functions.function_registry import BY_CLASS, BY_NAME
from rejoinder.sql.functions.names.call_names import call_arguments, call_name
from rejoinder.sql.functions.names.literal_names import (
    interval_name,
    is_of_days,
    moment_name,
    number_name,
    suffixed_name,
)
from rejoinder.sql.functions.window_names import window_name
from rejoinder.sql.parse.dialect import SUFFIX, UNIT, WRITTEN
from rejoinder.sql.types import spark_types

SUBQUERY = "subquery name"
"""In the meta of a column that stands for a subquery: Spark's name of the subquery, or None."""
_OPERATORS: dict[type[exp.Expr], str] = {
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
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}
_TEMPLATES: dict[type[exp.Expr], str] = {
    exp.NEQ: "(NOT ({0} = {1}))",
    exp.NullSafeNEQ: "(NOT ({0} <=> {1}))",
    exp.DPipe: "concat({0}, {1})",
    exp.Like: "{0} LIKE {1}",
    exp.ILike: "ilike({0}, {1})",
    exp.RegexpLike: "RLIKE({0}, {1})",
    exp.BitwiseNot: "~{0}",
    exp.Not: "(NOT {0})",
}
"""Operators in forms of their own, by operands."""
_DEFAULT_FORMAT = "%Y-%mstrict-%dstrict %Hstrict:%Mstrict:%Sstrict"
"""What sqlglot adds to UNIX_TIMESTAMP without a format."""
_VARIABLE = "namedlambdavariable()"


class NotCertainError(Exception):
    """Spark's name of a part is not known."""


@dataclass(frozen=True)
class ExpressionNames:
    """Names expressions over some columns."""

    type_of: Callable[[exp.Expr], pa.DataType | None]
    """The type of an operand; None if it is not known."""
    is_column: Callable[[exp.Column], bool]
    """Whether a name with dots is a column with a qualifier, and not a field of a struct."""

    def name(self, node: exp.Expr) -> str:
        """Spark's text of an expression. Raises `NotCertainError`."""
        if SUBQUERY in node.meta:
            return _certain(node.meta[SUBQUERY])
        name = self._leaf(node)
        if name is not None:
            return name
        aggregate = self._aggregate(node)
        if aggregate is not None:
            return aggregate
        name = self._form(node)
        if name is None:
            name = self._call(node)
        return f"(NOT {name})" if node.args.get("negate") is True else name

    def _leaf(self, node: exp.Expr) -> str | None:
        match node:
            case exp.Paren():
                return self.name(node.this)
            case exp.Column():
                return self._path(node)
            case exp.Identifier():  # columns are of their own class, so this is a variable of a lambda
                return _VARIABLE
            case exp.RawString():
                return str(node.this)
            case exp.Literal():
                return str(node.this) if node.is_string else number_name(node.this)
            case exp.Boolean():
                return str(node.this).lower()
            case exp.Null():
                return "NULL"
        return None

    def _path(self, node: exp.Column) -> str:
        parts = node.parts
        if len(parts) == 1:
            return node.name
        if self.is_column(node):
            return node.name
        for length in (2, 1):
            start = exp.column(parts[length - 1].name, table=parts[0].name if length == 2 else None)
            if length < len(parts) and self.is_column(start):
                return ".".join(part.name for part in parts[length - 1 :])
        raise NotCertainError

    def _form(self, node: exp.Expr) -> str | None:
        """The name of an operator or another form that is not a call; None of a call."""
        if WRITTEN in node.meta and not (is_cast(node) or isinstance(node, exp.Is | exp.Struct | exp.Trim)):
            return None
        if isinstance(node, exp.And | exp.Or):
            return self._balanced(_operands(node), _OPERATORS[type(node)])
        if isinstance(node, exp.Mul) and spark_types.is_interval(self.type_of(node.expression) or pa.null()):
            return f"({self.name(node.expression)} * {self.name(node.this)})"
        if type(node) in _OPERATORS:
            return f"({self.name(node.this)} {_OPERATORS[type(node)]} {self.name(node.expression)})"
        match node:
            case exp.Add() | exp.Sub():
                return self._sum(node)
            case exp.Cast():
                return self._cast(node)
            case exp.Interval():
                return _certain(interval_name(node))
            case exp.Not(this=exp.Is(expression=exp.Null())) if WRITTEN in node.this.meta:
                return f"({self.name(node.this.this)} IS NOT NULL)"
            case exp.Is(expression=exp.Null()):
                return f"({self.name(node.this)} IS NULL)"
            case exp.Is(expression=exp.Boolean()):
                return f"({self.name(node.this)} <=> {self.name(node.expression)})"
            case exp.Neg(this=exp.Literal(is_string=False)):
                return number_name(node.this.this, negative=True)
            case exp.Neg(this=exp.TryCast()) if node.this.meta.get(WRITTEN) == SUFFIX:
                return suffixed_name(node.this.this.this, node.this.to.this, negative=True)
            case exp.Neg():
                return f"(- {self.name(node.this)})"
            case exp.Between():
                return f"between({self._listed([node.args[name] for name in ('this', 'low', 'high')])})"
            case exp.In() if node.expressions:
                return f"({self.name(node.this)} IN ({self._listed(node.expressions)}))"
            case exp.Case():
                return self._case(node)
            case exp.Escape(this=exp.Like()):
                like, escape = node.this, self.name(node.expression)
                name = f"{self.name(like.this)} LIKE {self.name(like.expression)} ESCAPE '{escape}'"
                return f"(NOT {name})" if like.args.get("negate") else name
            case exp.Bracket() if len(node.expressions) == 1:
                return f"{self.name(node.this)}[{self.name(node.expressions[0])}]"
            case exp.Dot(expression=exp.Identifier()):
                return f"{self.name(node.this)}.{node.expression.name}"
            case exp.Lambda():
                return f"lambdafunction({', '.join([self.name(node.this), *[_VARIABLE] * len(node.expressions)])})"
            case exp.Struct():
                return self._struct(node)
            case exp.Trim():
                return self._trim(node)
        template = _TEMPLATES.get(type(node))
        operands = (node.this, node.expression) if isinstance(node, exp.Binary) else (node.this,)
        return None if template is None else template.format(*map(self.name, operands))

    def _balanced(self, operands: Sequence[exp.Expr], sign: str) -> str:
        """The name of conditions in a row: Spark makes a balanced tree of them."""
        if len(operands) == 1:
            return self.name(operands[0])
        middle = (len(operands) + 1) // 2
        left, right = (self._balanced(half, sign) for half in (operands[:middle], operands[middle:]))
        return f"({left} {sign} {right})"

    def _call(self, node: exp.Expr) -> str:
        """The name of a call. The word of a unit of time is as it was written."""
        written = node.name if isinstance(node, exp.Anonymous) else node.meta.get(WRITTEN)
        if isinstance(node, exp.CurrentTimestamp | exp.CurrentDate) and written is None:
            written = node.sql_name()
        if written is None:
            raise NotCertainError
        if written.lower() == "window":
            return "window"
        function = BY_NAME.get(written.lower()) if isinstance(node, exp.Anonymous) else BY_CLASS.get(type(node))
        parts = call_arguments(node, written, () if function is None else function.order)
        if isinstance(node, exp.StrToUnix) and node.args["format"].name != _DEFAULT_FORMAT:
            raise NotCertainError  # sqlglot translates the format
        unit = node.meta.get(UNIT)
        names = [unit if unit is not None and _is_unit(part) else self.name(part) for part in parts]
        if written.lower() == "time_bucket" and len(names) == 2:
            plain = "_NTZ" * (self.type_of(parts[1]) == spark_types.TIMESTAMP_NTZ)
            names.append(f"TIMESTAMP{plain} '1970-01-01 00:00:00'")
        if written.lower() in ("to_char", "to_varchar"):
            kind = self.type_of(parts[0])
            written = "date_format" if kind is not None and spark_types.is_datetime(kind) else "to_char"
        return _certain(call_name(written, names))

    def _aggregate(self, node: exp.Expr) -> str | None:
        if isinstance(node, exp.Window):
            return _certain(window_name(node, self.name))
        if isinstance(node, exp.WithinGroup):
            return self._within_group(node)
        if isinstance(node, exp.IgnoreNulls | exp.RespectNulls):
            return self.name(node.this)
        if isinstance(node, exp.Filter):
            return f"{self.name(node.this)} FILTER (WHERE {self.name(node.expression.this)})"
        if isinstance(node, exp.Grouping | exp.GroupingId):
            return (
                f"{'grouping' if isinstance(node, exp.Grouping) else 'grouping_id'}({self._listed(node.expressions)})"
            )
        aggregate = aggregate_of(node)
        if aggregate is None:
            return None
        if isinstance(node.this, exp.Star):
            return "count(1)"
        name = node.name if isinstance(node, exp.Anonymous) else str(node.meta.get(WRITTEN, aggregate.name))
        name = "any" if isinstance(node, exp.Any) else name.lower()
        if aggregate.sketch:
            sketch = call_name(aggregate.sketch, [self.name(part) for part in sketch_node(node, aggregate).expressions])
            return call_name(name, [_certain(sketch), *map(self.name, node.expressions[1:])])
        listed = argument_nodes(node)
        distinct = isinstance(listed[0], exp.Distinct)
        if isinstance(listed[-1], exp.Order):
            raise NotCertainError
        if distinct:
            listed = [*listed[0].expressions, *listed[1:]]
        parts = [self.name(part) for part in listed]
        parts[0] = f"DISTINCT {parts[0]}" if distinct else parts[0]
        return call_name("collect_list" if name == "array_agg" else name, parts)

    def _within_group(self, node: exp.WithinGroup) -> str:
        """The name of a percentile. Spark's names of others depend on the order in ways of their own."""
        inner, order = node.this, node.expression.expressions
        name = inner.name.lower() if isinstance(inner, exp.Anonymous) else ""
        if name not in ("percentile_cont", "percentile_disc") or len(order) != 1:
            raise NotCertainError
        direction = " DESC" if order[0].args.get("desc") else ""
        by = f"{self.name(order[0].this)}{direction}"
        return f"{name}({self._listed(inner.expressions[:1])}) WITHIN GROUP (ORDER BY {by})"

    def _sum(self, node: exp.Expr) -> str:
        """The name of a sum or difference: that of a date is a call, that of a timestamp has no parentheses."""
        sign = "+" if isinstance(node, exp.Add) else "-"
        left, right = node.this, node.expression
        if _is_interval(left) and sign == "+":
            left, right = right, left
        if _is_interval(right):
            return self._shifted(left, sign, right)
        kinds = self.type_of(left), self.type_of(right)
        if any(kind is not None and spark_types.is_interval(kind) for kind in kinds):
            has_time = any(kind is not None and spark_types.is_datetime(kind) for kind in kinds)
            first, last = self.name(left), self.name(right)
            return f"{first} {sign} {last}" if has_time else f"({first} {sign} {last})"
        if sign == "-" and pa.types.is_timestamp(kinds[0] or pa.null()) and spark_types.is_datetime(kinds[1]):
            return f"({self.name(left)} - {self.name(right)})"
        if None in kinds or any(pa.types.is_timestamp(kind) for kind in kinds):
            raise NotCertainError
        first, second = (pa.types.is_date(kind) for kind in kinds)
        if second and (first or sign == "-"):
            raise NotCertainError
        if first or second:
            day, number = (left, right) if first else (right, left)
            return f"{'date_add' if sign == '+' else 'date_sub'}({self.name(day)}, {self.name(number)})"
        return f"({self.name(left)} {sign} {self.name(right)})"

    def _shifted(self, time: exp.Expr, sign: str, interval: exp.Expr) -> str:
        kind, text = self.type_of(time), _certain(interval_name(interval))
        if kind is None or not spark_types.is_datetime(kind):
            raise NotCertainError
        if pa.types.is_date(kind) and is_of_days(interval):
            days = f"extractansiintervaldays({text})"
            return f"date_add({self.name(time)}, {days if sign == '+' else f'(- {days})'})"
        return f"{self.name(time)} {sign} {text}"

    def _cast(self, node: exp.Cast) -> str:
        written, value = str(node.meta.get(WRITTEN, "")).lower(), node.this
        if written == SUFFIX:
            return suffixed_name(value.this, node.to.this)
        if not written and isinstance(value, exp.Literal) and not isinstance(node, exp.TryCast):
            return _certain(moment_name(value.this, node.to.this))
        kind = spark_types.arrow_type(node.to)
        if written not in ("", "cast", "try_cast") or pa.types.is_nested(kind):
            return self.name(value)  # Spark leaves out `int(x)`, and casts to arrays, maps and structs
        verb = "TRY_CAST" if node.args.get("safe") else "CAST"
        return f"{verb}({self.name(value)} AS {spark_types.spark_name(kind).upper()})"

    def _case(self, node: exp.Case) -> str:
        parts = ["CASE"]
        for branch in node.args["ifs"]:
            condition = self.name(branch.this)
            condition = condition if node.this is None else f"({self.name(node.this)} = {condition})"
            parts += ["WHEN", condition, "THEN", self.name(branch.args["true"])]
        default = node.args.get("default")
        return " ".join([*parts, *([] if default is None else ["ELSE", self.name(default)]), "END"])

    def _struct(self, node: exp.Struct) -> str:
        is_named = str(node.meta.get(WRITTEN, "")).lower() == "named_struct"
        fields = []
        for part in node.expressions:
            if not isinstance(part, exp.PropertyEQ):
                raise NotCertainError
            value = self.name(part.expression)
            alias = "" if WRITTEN in part.meta else f" AS {part.this.name}"
            fields.append(f"{part.this.name}, {value}" if is_named else f"{value}{alias}")
        return f"{'named_' * is_named}struct({', '.join(fields)})"

    def _trim(self, node: exp.Trim) -> str:
        written, position = str(node.meta.get(WRITTEN, "trim")).lower(), node.args.get("position")
        place = {"ltrim": "LEADING", "rtrim": "TRAILING"}.get(written, str(position or "BOTH").upper())
        if node.expression is not None:
            return f"TRIM({place} {self.name(node.expression)} FROM {self.name(node.this)})"
        name = {"LEADING": "ltrim", "TRAILING": "rtrim", "BOTH": "trim"}[place]
        return f"{name}({self.name(node.this)})"

    def _listed(self, nodes: Sequence[exp.Expr]) -> str:
        return ", ".join(map(self.name, nodes))


def is_cast(node: exp.Expr) -> bool:
    """Whether this is a cast, written in any way, and not `to_timestamp`, which sqlglot reads as one."""
    return isinstance(node, exp.Cast) and not str(node.meta.get(WRITTEN, "")).lower().startswith("to_")


def _operands(node: exp.Expr) -> list[exp.Expr]:
    """The operands of a logical operator that is repeated."""
    listed, left = [node.expression], node.this
    while type(left) is type(node) and WRITTEN not in left.meta:
        listed.append(left.expression)
        left = left.this
    return [left, *reversed(listed)]


def _is_unit(node: exp.Expr) -> bool:
    return node.arg_key == "unit" or (isinstance(node.parent, exp.Extract) and node.arg_key == "this")


def _is_interval(node: exp.Expr) -> bool:
    return isinstance(node, exp.Interval) or (
        isinstance(node, exp.Paren | exp.Add) and all(map(_is_interval, node.iter_expressions()))
    )


def _certain(name: str | None) -> str:
    if name is None:
        raise NotCertainError
    return name
