"""IN, ANY and ALL as values: TRUE, FALSE or NULL, as SQL's three-valued logic says.

`x op ANY (S)` is TRUE if it is TRUE of a row of S; else NULL if it is NULL of a row, because x is NULL or the row is;
else FALSE. Relations with at most one row for a row of the outer query decide this: the row of S that equals x, or the
smallest and largest value of S; whether S has rows; whether it has a row that is NULL. They change only if a truth
value may change.

    x IN (S)      CASE WHEN x equals a row THEN TRUE
                       WHEN S has rows AND (x IS NULL OR S has a NULL) THEN NULL ELSE FALSE END
    x < ANY (S)   CASE WHEN x < greatest THEN TRUE WHEN … the same

`x op ALL (S)` is NOT of ANY with the opposite comparison. Several columns at once are compared with IN only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from rejoinder.errors import TypeMismatch, Unsupported
from rejoinder.ir.aggregate_calls import Call, Function
from rejoinder.ir.expressions import nodes, operators
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.identities import column_text
from rejoinder.ir.logical import Aggregate, Distinct, Filter, Predicate, Project, Query
from rejoinder.sql.bind.predicates import equal
from rejoinder.sql.bind.scope import Column
from rejoinder.sql.bind.subqueries.subquery_forms import SubqueryForm
from rejoinder.sql.functions.expression_compiler import compile_expression
from rejoinder.sql.parse.clauses import marked_name, text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.spark_types import BOOLEAN

if TYPE_CHECKING:
    from rejoinder.sql.bind.subqueries.subquery_values import SubqueryValues

_TRUE, _FALSE, _NULL = (nodes.Literal(value, BOOLEAN) for value in (True, False, None))


def in_value(rows: SubqueryValues, form: SubqueryForm, values: tuple[exp.Expr, ...], query: Query) -> Expression:
    """The value of IN, or NOT of it."""
    compared = [compile_expression(value, rows.scope) for value in values]
    number = next(rows.binder.numbers)
    members = tuple((column_text(number, f"member{place}"), e) for place, (_, e) in enumerate(query.outputs))
    types = tuple((i, e.type) for i, e in members)
    distinct = Distinct(Project(query.root, members), types)
    equalities = tuple(
        equality(value, e, Expression(column(*typed).node, output.text), form)
        for value, e, typed, (_, output) in zip(values, compared, types, query.outputs, strict=True)
    )
    rows.join(distinct, equalities)
    is_member = operators.is_not_null(column(*types[0]).node)
    if len(values) > 1:
        return _decided(form, is_member, _is_open(rows, form, values, compared, query))
    return _decided(form, is_member, _unknown(rows, compared[0], query))


def any_value(rows: SubqueryValues, form: SubqueryForm, values: tuple[exp.Expr, ...], query: Query) -> Expression:
    """The value of a comparison other than `=` with ANY, or NOT of it."""
    if len(values) != 1:
        raise Unsupported(
            f"{form.comparison.key.upper()} of {len(values)} columns with a subquery is not supported",
            detail=form.text,
            hint="compare one column; IN and NOT IN compare several",
        )
    output = query.outputs[0][1]
    if spark_types.is_nested(output.type):
        kind = spark_types.spark_name(output.type)
        hint = "select its fields or elements"
        raise Unsupported(f"ANY and ALL over {kind} are not supported", detail=form.text, hint=hint)
    value = compile_expression(values[0], rows.scope)
    functions: tuple[Function, ...] = ("min", "max")
    if form.comparison is not exp.NEQ:
        functions = ("max",) if form.comparison in (exp.LT, exp.LTE) else ("min",)
    unknown = _unknown(rows, value, query)
    scope = rows.scope
    tests = []
    for i in _extremes(rows, query, functions):
        name = marked_name(text_of(form.query), next(rows.binder.numbers))
        scope = scope.computing(Column("", name, i, output.type))
        reference = exp.column(exp.to_identifier(name, quoted=True))
        try:
            test = compile_expression(form.comparison(this=values[0].copy(), expression=reference), scope)
        except TypeMismatch as failure:
            raise TypeMismatch(failure.fact, detail=form.text, hint=failure.hint) from failure
        tests.append(test.node)
    return _decided(form, tests[0] if len(tests) == 1 else nodes.Or(tests), unknown)


def equality(value: exp.Expr, ours: Expression, theirs: Expression, form: SubqueryForm) -> Predicate:
    """The predicate that a value equals a column of a subquery. Raises `TypeMismatch`, naming both."""
    names = text_of(value), theirs.text
    try:
        return equal(ours, theirs, value, names, f"{names[0]} = {names[1]}")
    except TypeMismatch as failure:
        raise TypeMismatch(failure.fact, detail=form.text, hint=failure.hint) from failure


def _decided(form: SubqueryForm, is_true: nodes.Node, is_null: nodes.Node) -> Expression:
    results = (_FALSE, _TRUE) if form.is_negated else (_TRUE, _FALSE)
    return Expression(nodes.Case((is_true, results[0], is_null, _NULL, results[1]), BOOLEAN), form.text)


def _unknown(rows: SubqueryValues, value: Expression, query: Query) -> nodes.Node:
    """Whether a comparison of one column that is TRUE of no row is NULL of one."""
    member = query.outputs[0][1]
    has_rows = operators.is_not_null(rows.flag(query.root).node)
    has_nulls = operators.is_not_null(rows.flag(query.root, Expression(operators.is_null(member.node))).node)
    return nodes.And((has_rows, nodes.Or((operators.is_null(value.node), has_nulls))))


def _extremes(rows: SubqueryValues, query: Query, functions: tuple[Function, ...]) -> list[str]:
    """The columns with the smallest or largest value of a subquery."""
    member = query.outputs[0][1]
    number = next(rows.binder.numbers)
    calls = tuple((column_text(number, function), Call(function, member, member.type)) for function in functions)
    rows.join(Project(Aggregate(query.root, (), calls), tuple((i, column(i, call.type)) for i, call in calls)))
    return [i for i, _ in calls]


def _is_open(
    rows: SubqueryValues, form: SubqueryForm, written: tuple[exp.Expr, ...], values: list[Expression], query: Query
) -> nodes.Node:
    """Whether some row of several columns is not surely different from the values, though none is equal.

    Such a row has a NULL, or the values have one: few rows meet each other here, unless NULL is common on both sides.
    """
    members = [e for _, e in query.outputs]
    nulls = _null_in(members)
    flags = []
    for condition in (nulls, None):
        number = next(rows.binder.numbers)
        ids = [column_text(number, f"member{place}") for place in range(len(members))]
        root = query.root if condition is None else Filter(query.root, (Predicate(condition),))
        own = tuple(zip(ids, members, strict=True))
        distinct = Distinct(Project(root, own), tuple((i, e.type) for i, e in own))
        pairs = zip(written, values, own, strict=True)
        conditions = [_not_different(node, ours, column(i, e.type), form) for node, ours, (i, e) in pairs]
        flags.append(rows.flag(distinct, *([] if condition is not None else [_null_in(values)]), *conditions))
    return nodes.Or(operators.is_not_null(flag.node) for flag in flags)


def _null_in(values: list[Expression]) -> Expression:
    return Expression(nodes.Or(operators.is_null(value.node) for value in values))


def _not_different(node: exp.Expr, ours: Expression, theirs: Expression, form: SubqueryForm) -> Expression:
    is_equal = equality(node, ours, theirs, form).expression.node
    return Expression(nodes.Or((operators.is_null(ours.node), operators.is_null(theirs.node), is_equal)))
