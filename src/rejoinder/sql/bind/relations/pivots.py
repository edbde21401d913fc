"""PIVOT and UNPIVOT behind an item of FROM.

    FROM t PIVOT (sum(x) FOR c IN ('a' AS a, 'b' AS b))        -- t has columns k, c and x

    FROM (SELECT k, CASE WHEN count_if(c <=> 'a') > 0 THEN sum(x) FILTER (WHERE c <=> 'a') END AS a, …
          FROM t GROUP BY k)

Rows are grouped by the columns that PIVOT does not name. A group without a row for a value has NULL there, also for
COUNT, as in Spark.

    FROM t UNPIVOT (v FOR n IN (a, b))                         -- t has columns k, a and b

    FROM (SELECT k, e.name AS n, e.col0 AS v FROM t LATERAL VIEW explode(<structs of 'a', a and 'b', b>) AS e
          WHERE e.col0 IS NOT NULL)

UNPIVOT leaves rows out whose values are all NULL, unless it says INCLUDE NULLS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from rejoinder.errors import InvalidSql, TypeMismatch, Unsupported
from rejoinder.ir.expressions import nodes
from rejoinder.ir.expressions.expression import Expression, column
from rejoinder.ir.expressions.nodes import Or
from rejoinder.ir.expressions.operators import is_not_null
from rejoinder.ir.identities import column_id, column_text
from rejoinder.ir.logical import Expand, Filter, Node, Predicate, Project, Query
from rejoinder.sql.bind.groups.aggregate_functions import aggregates_in
from rejoinder.sql.bind.groups.group_by import bind_groups
from rejoinder.sql.bind.relations.generators import field_at, list_of_rows
from rejoinder.sql.bind.scope import Column, Scope
from rejoinder.sql.functions.expression_compiler import compile_expression
from rejoinder.sql.functions.output_names import output_name
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.types import spark_types
from rejoinder.sql.types.terms import Term


def bind_pivot(root: Node, scope: Scope, pivot: exp.Pivot, numbers: Iterator[int]) -> Query:
    """Bind PIVOT or UNPIVOT over the rows of a relation. Raises a `PlanningError`."""
    if pivot.args.get("unpivot"):
        return _unpivoted(root, scope, pivot, numbers)
    calls = list(pivot.expressions)
    fields = pivot.args.get("fields") or []
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or fields[0].args.get("query"):
        hint = "write PIVOT (sum(x) FOR c IN ('a', 'b'))"
        raise Unsupported("this form of PIVOT is not supported", detail=text_of(pivot), hint=hint)
    plain = next((call for call in calls if not any(True for _ in aggregates_in(_unaliased(call)))), None)
    if plain is not None or not calls:
        raise InvalidSql(
            f"PIVOT without an aggregate{f': `{text_of(plain)}`' if plain is not None else ''}",
            detail=text_of(pivot),
            hint="several rows can have one value: take sum(x), count(*), any_value(x), …",
        )
    pivoted = _columns(fields[0].this)
    read = [*pivoted, *(c for call in calls for c in call.find_all(exp.Column))]
    used = {scope.resolve(c)[0] for c in read}
    kept = [_reference(c) for c in scope.all(None, text_of(pivot)) if c.id not in used]
    items: list[exp.Expr] = [exp.alias_(c.copy(), c.name, quoted=True) for c in kept]
    for value in fields[0].expressions:
        condition = _condition(pivoted, value, pivot)
        results = ((_restricted(_unaliased(call), condition), _name(value, call, calls)) for call in calls)
        items += [exp.alias_(result, name, quoted=True) for result, name in results]
    select = exp.Select(expressions=items, group=exp.Group(expressions=[c.copy() for c in kept]) if kept else None)
    root, scope, select = bind_groups(root, scope, select, numbers)
    return Query(root, tuple((item.alias, compile_expression(item.this, scope)) for item in select.expressions))


def _restricted(call: exp.Expr, condition: exp.Expr) -> exp.Expr:
    """An aggregate over the rows of one value; NULL if there are none."""
    exists = exp.GT(this=exp.CountIf(this=condition.copy()), expression=exp.Literal.number(0))
    value = exp.Paren(this=call.copy())
    for aggregate in list(aggregates_in(value)):
        inner, both = aggregate, condition.copy()
        if isinstance(inner, exp.Filter):
            inner, both = inner.this, exp.and_(inner.expression.this.copy(), both)
        aggregate.replace(exp.Filter(this=inner.copy(), expression=exp.Where(this=both)))
    return exp.Case(ifs=[exp.If(this=exists, true=value)])


def _condition(columns: Sequence[exp.Column], value: exp.Expr, pivot: exp.Expr) -> exp.Expr:
    """That the pivoted columns have a value; NULL is one."""
    values = value.this if isinstance(value, exp.Alias) else value
    parts = list(values.expressions) if isinstance(values, exp.Tuple) else [values]
    if len(parts) != len(columns):
        raise InvalidSql(
            f"PIVOT FOR {len(columns)} columns has a value of {len(parts)}",
            detail=text_of(pivot),
            hint="write as many values as columns: FOR (a, b) IN ((1, 'x'), (2, 'y'))",
        )
    tests = [exp.NullSafeEQ(this=c.copy(), expression=part.copy()) for c, part in zip(columns, parts, strict=True)]
    return exp.and_(*tests) if len(tests) > 1 else tests[0]


def _name(value: exp.Expr, call: exp.Expr, calls: Sequence[exp.Expr]) -> str:
    """The name of a column as Spark gives it: that of the value and, if there are several aggregates, of the call."""
    if isinstance(value, exp.Alias):
        name = value.alias
    elif isinstance(value, exp.Tuple):
        name = f"{{{', '.join(map(_text, value.expressions))}}}"
    else:
        name = _text(value)
    if len(calls) == 1:
        return name
    return f"{name}_{call.alias if isinstance(call, exp.Alias) else output_name(call)}"


def _text(value: exp.Expr) -> str:
    if isinstance(value, exp.Null):
        return "null"
    return value.name if isinstance(value, exp.Literal) else text_of(value)


def _columns(node: exp.Expr) -> list[exp.Column]:
    columns = []
    for item in node.expressions if isinstance(node, exp.Tuple) else [node.unnest()]:
        part = exp.column(item.copy()) if isinstance(item, exp.Identifier) else item
        if not isinstance(part, exp.Column):
            raise InvalidSql(f"`{text_of(part)}` is not a column", detail=text_of(node), hint="name columns of FROM")
        columns.append(part)
    return columns


def _unpivoted(root: Node, scope: Scope, pivot: exp.Pivot, numbers: Iterator[int]) -> Query:
    fields = pivot.args.get("fields") or []
    if len(fields) != 1 or not isinstance(fields[0], exp.In) or len(pivot.expressions) != 1:
        hint = "write UNPIVOT (value FOR name IN (a, b))"
        raise Unsupported("this form of UNPIVOT is not supported", detail=text_of(pivot), hint=hint)
    (target,) = pivot.expressions
    values = [part.name for part in (target.expressions if isinstance(target, exp.Tuple) else [target])]
    rows, used = [], set()
    for item in fields[0].expressions:
        inner = item.this if isinstance(item, exp.Alias) else item
        columns = _columns(inner)
        if len(columns) != len(values):
            raise InvalidSql(
                f"UNPIVOT takes {len(columns)} columns into {len(values)}",
                detail=text_of(pivot),
                hint="write as many columns as values: UNPIVOT ((v, w) FOR name IN ((a, b), (c, d)))",
            )
        named = item.alias if isinstance(item, exp.Alias) else "_".join(c.name for c in columns)
        ids = [scope.resolve(c) for c in columns]
        used |= {i for i, _ in ids}
        label = Term(nodes.Literal(named, spark_types.STRING))
        rows.append([label, *(Term(nodes.Column(i, kind)) for i, kind in ids)])
    try:
        elements = list_of_rows(rows, pivot, "col{}", first=0)
    except TypeMismatch as failure:
        raise TypeMismatch(failure.fact, detail=text_of(pivot), hint="CAST the columns to one type") from failure
    number = next(numbers)
    element = column_text(column_id(rows[0][1].node.columns[0]).input, f"unpivoted/{number}")
    root = Expand(root, element, Expression(elements.list.node, f"column of {text_of(pivot)}"))
    kind = elements.list.type.value_type
    row = Term(nodes.Column(element, kind))
    terms = [field_at(row, at) for at in range(kind.num_fields)]
    kept = [(c.name, column(c.id, c.type)) for c in scope.all(None, text_of(pivot)) if c.id not in used]
    names = [fields[0].this.name, *values]
    made = [
        (column_text(number, f"{at}/{name}"), Expression(term.node))
        for at, (name, term) in enumerate(zip(names, terms, strict=True))
    ]
    root = Project(root, (*((e.columns[0], e) for _, e in kept), *made))
    columns_made = [column(i, e.type) for i, e in made]
    if not pivot.args.get("include_nulls"):
        tests = [is_not_null(value.node) for value in columns_made[1:]]
        present = Expression(Or(tests) if len(tests) > 1 else tests[0], f"{', '.join(values)} IS NOT NULL")
        root = Filter(root, (Predicate(present),))
    return Query(root, (*kept, *zip(names, columns_made, strict=True)))


def _reference(c: Column) -> exp.Column:
    return exp.column(exp.to_identifier(c.name, quoted=True), table=c.qualifier or None)


def _unaliased(item: exp.Expr) -> exp.Expr:
    inner: exp.Expr = item.this if isinstance(item, exp.Alias) else item
    return inner
