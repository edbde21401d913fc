"""Spellings of a SELECT list that others replace: `* EXCEPT (…)`, `* REPLACE (…)`, and aliases of earlier items.

SELECT * EXCEPT (s), n + 1 AS m, m * 2 AS d FROM t

SELECT k, n, n + 1 AS m, (n + 1) * 2 AS d FROM t
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from rejoinder.errors import AmbiguousName, InvalidSql, UnknownName, Unsupported
from rejoinder.sql.bind.relations.generators import called_generator
from rejoinder.sql.bind.scope import Scope
from rejoinder.sql.parse.clauses import text_of


def plain_select_list(node: exp.Select, scope: Scope) -> exp.Select:
    """Return a SELECT without these spellings. Raises a `PlanningError`."""
    result = node.copy()
    listed = [each for item in list(result.expressions) for each in _columns(item.pop(), scope)]
    result.set("expressions", _without_lateral_aliases(listed, scope))
    return result


def _columns(item: exp.Expr, scope: Scope) -> Iterator[exp.Expr]:
    """Yield the columns of a star with EXCEPT or REPLACE; any other item as it is."""
    star = item.this if isinstance(item, exp.Column) else item
    options = star.args if isinstance(star, exp.Star) else {}
    if options.get("rename"):
        raise Unsupported("* RENAME is not supported", detail=text_of(item), hint="list the columns, with AS")
    excepted = options.get("except_") or options.get("except") or []
    replaced = {value.alias.lower(): value for value in options.get("replace") or []}
    if not excepted and not replaced:
        yield item
        return
    columns = scope.all(item.table or None if isinstance(item, exp.Column) else None, text_of(item))
    # A qualified name is not a name of `*`, as in Spark.
    named = [part.name.lower() if not part.args.get("table") else text_of(part) for part in excepted]
    places = [c.name.lower() for c in columns]
    for name in (*named, *replaced):
        does = "leave out" if name in named else "replace"
        if name not in places:
            listed = ", ".join(f"`{c.name}`" for c in columns)
            raise UnknownName(f"there is no column `{name}` to {does}", detail=text_of(item), hint=f"columns: {listed}")
        if name in replaced and places.count(name) > 1:
            fact, hint = f"there are several columns `{name}` to replace", "select one of them first"
            raise AmbiguousName(fact, detail=text_of(item), hint=hint)
    kept = [c for c in columns if c.name.lower() not in named]
    if not kept:
        raise InvalidSql("EXCEPT leaves no column", detail=text_of(item), hint="keep one column")
    for c in kept:
        qualifier = exp.to_identifier(c.qualifier, quoted=True) if c.qualifier else None
        name = exp.to_identifier(c.name, quoted=True)
        value = replaced.get(c.name.lower())
        yield exp.column(name, table=qualifier) if value is None else exp.alias_(value.this, name)


def _without_lateral_aliases(items: list[exp.Expr], scope: Scope) -> list[exp.Expr]:
    """Replace names of earlier items by their expressions; `relations.generators` does it for those of generators."""
    result: list[exp.Expr] = []
    known: dict[str, list[exp.Expr]] = {}
    for item in items:
        plain = _replaced(item, known, scope) if any(_is_alias(part, known, scope) for part in item.walk()) else item
        result.append(plain)
        if isinstance(plain, exp.Alias) and called_generator(plain) is None:
            known.setdefault(plain.alias.lower(), []).append(plain.this)
    return result


def _is_alias(part: exp.Expr, known: Mapping[str, list[exp.Expr]], scope: Scope) -> bool:
    """Whether a name means an earlier item. As in Spark, a column of FROM comes first, and subqueries see no items."""
    if not isinstance(part, exp.Column) or part.table or part.name.lower() not in known:
        return False
    return not scope.knows(part) and part.find_ancestor(exp.Query) is None


def _replaced(item: exp.Expr, known: Mapping[str, list[exp.Expr]], scope: Scope) -> exp.Expr:
    if not isinstance(item, exp.Alias | exp.Column):
        raise Unsupported(
            f"`{text_of(item)}` needs a name",
            detail="it uses the alias of an item before it",
            hint=f"write `{text_of(item)} AS name`",
        )

    def replaced(part: exp.Expr) -> exp.Expr:
        if not _is_alias(part, known, scope):
            return part
        found = known[part.name.lower()]
        if len(found) > 1:
            raise AmbiguousName(
                f"`{part.name}` is the alias of {len(found)} items",
                detail=f"in `{text_of(item)}`",
                hint="give each a name of its own",
            )
        return exp.paren(found[0].copy())

    plain = item.transform(replaced)
    return exp.alias_(plain, item.name, quoted=True) if isinstance(item, exp.Column) else plain
