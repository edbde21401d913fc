"""How Spark writes the call of a function in a generated name.

Most calls are the name as it was called, in lower case, and the arguments. Spark also writes some arguments that were
left out, and some functions in capitals or as operators.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from rejoinder.sql.parse.dialect import WRITTEN

_TIME_FORMAT = "yyyy-MM-dd HH:mm:ss"
_IDENTITY = "lambdafunction(namedlambdavariable(), namedlambdavariable())"
_CAPITALS = """
acos acosh asin asinh atan atan2 atanh cbrt cos cosh cot csc degrees e exp expm1 hypot log log10 log1p log2 pi power
radians regexp regexp_like rlike sec signum sin sinh sqrt tan tanh
"""
_IN_CAPITALS = frozenset(_CAPITALS.split())
_COMPARED = (
    "(IF((({0} IS NULL) AND ({0} IS NULL)), 0, (IF(({0} IS NULL), 1, (IF(({0} IS NULL), -1, "
    "(IF(({0} < {0}), -1, (IF(({0} > {0}), 1, 0))))))))))"
).format("namedlambdavariable()")
"""The order of ARRAY_SORT without a function."""
_OMITTED: dict[str, tuple[str, ...]] = {
    "aggregate": ("", "", "", _IDENTITY),
    "approx_percentile": ("", "", "10000"),
    "array_sort": ("", f"lambdafunction({_COMPARED}, namedlambdavariable(), namedlambdavariable())"),
    "assert_true": ("", "'{0}' is not true!"),
    "bround": ("", "0"),
    "hll_sketch_agg": ("", "12"),
    "from_unixtime": ("", _TIME_FORMAT),
    "listagg": ("", "NULL"),
    "locate": ("", "", "1"),
    "lpad": ("", "", " "),
    "make_dt_interval": ("0", "0", "0", "0.000000"),
    "make_interval": ("0", "0", "0", "0", "0", "0", "0.000000"),
    "make_ym_interval": ("0", "0"),
    "try_make_interval": ("0", "0", "0", "0", "0", "0", "0.000000"),
    "mask": ("", "X", "x", "n", "NULL"),
    "months_between": ("", "", "true"),
    "overlay": ("", "", "", "-1"),
    "percentile": ("", "", "1"),
    "percentile_approx": ("", "", "10000"),
    "position": ("", "", "1"),
    "reduce": ("", "", "", _IDENTITY),
    "regexp_extract": ("", "", "1"),
    "regexp_extract_all": ("", "", "1"),
    "regexp_instr": ("", "", "0"),
    "regexp_replace": ("", "", "", "1"),
    "replace": ("", "", ""),
    "round": ("", "0"),
    "rpad": ("", "", " "),
    "sort_array": ("", "true"),
    "split": ("", "", "-1"),
    "str_to_map": ("", ",", ":"),
    "string_agg": ("", "NULL"),
    "substr": ("", "", "2147483647"),
    "substring": ("", "", "2147483647"),
    "theta_sketch_agg": ("", "12"),
    **{f"tuple_sketch_agg_{kind}": ("", "", "12", "sum") for kind in ("double", "integer")},
    **{f"tuple_sketch_summary_{kind}": ("", "sum") for kind in ("double", "integer")},
    "to_unix_timestamp": ("", _TIME_FORMAT),
    "unix_timestamp": ("", _TIME_FORMAT),
}
"""What Spark writes for arguments that were left out, by their places."""
_FORMS: dict[str, str] = {
    "datepart": "datepart({0} FROM {1})",
    "div": "({0} div {1})",
    "extract": "extract({0} FROM {1})",
    "if": "(IF({0}, {1}, {2}))",
    "isnotnull": "({0} IS NOT NULL)",
    "isnull": "({0} IS NULL)",
    "like": "{0} LIKE {1}",
    "positive": "(+ {0})",
    "raise_error": "raise_error(USER_RAISED_EXCEPTION, map(errorMessage, {0}))",
}
_ORDERS: dict[str, tuple[str, ...]] = {
    "date_trunc": ("unit", "this"),
    "instr": ("this", "substr"),
    "locate": ("substr", "this", "position"),
    "position": ("substr", "this", "position"),
    "timestampadd": ("unit", "expression", "this"),
    "timestampdiff": ("unit", "expression", "this"),
    "to_timestamp": ("this",),
    "trunc": ("this", "unit"),
    "unix_timestamp": ("this",),
}
"""The arguments of sqlglot's classes as they are written, where they are in another order, or have additions."""
_UNIT_FORMS = {
    "date_add": "timestampadd",
    "date_diff": "timestampdiff",
    "dateadd": "timestampadd",
    "datediff": "timestampdiff",
}
"""What the names of functions mean if a unit of time is the first argument."""


def call_name(name: str, parts: Sequence[str]) -> str | None:
    """Spark's text of a call, from the name as it was written and the texts of the arguments; None if not certain.

    >>> call_name("ROUND", ["x"]), call_name("sqrt", ["x"]), call_name("isnull", ["x"])
    ('round(x, 0)', 'SQRT(x)', '(x IS NULL)')
    """
    name = name.lower()
    if name == "convert_timezone" and len(parts) == 2:
        return f"convert_timezone(current_timezone(), {', '.join(parts)})"
    if name.startswith("try_make_timestamp"):
        parts = parts[:6]  # Spark leaves the zone out
    if name == "log" and len(parts) == 1:
        return f"LOG(E(), {parts[0]})"
    if name in ("ceil", "floor") and len(parts) == 1:
        return f"{name.upper()}({parts[0]})"
    if len(parts) == 3:
        name = _UNIT_FORMS.get(name, name)
    name = "date_add" if name == "dateadd" else name
    if name == "from_json":
        return f"from_json({parts[0]})"
    if name == "try_to_time":
        return f"try_to_time(to_time({', '.join(parts)}))"
    if name in _FORMS:
        return _FORMS[name].format(*parts) if len(parts) == _FORMS[name].count("{") else None
    parts = [
        *parts,
        *(text.replace("{0}", parts[0]) if parts else text for text in _OMITTED.get(name, ())[len(parts) :]),
    ]
    return f"{name.upper() if name in _IN_CAPITALS else name}({', '.join(parts)})"


def call_arguments(node: exp.Expr, written: str, order: Sequence[str] = ()) -> list[exp.Expr]:
    """The arguments of a call in the order in which they are written. `order` is that of the registry."""
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    name, has_unit = written.lower(), isinstance(node.args.get("unit"), exp.Var)
    if isinstance(node, exp.TsOrDsAdd):  # sqlglot adds the unit, and makes an addition of a subtraction
        return [node.this, node.expression.this if name == "date_sub" else node.expression]
    name = _UNIT_FORMS.get(name, name) if has_unit else name
    found: list[exp.Expr] = []
    for part in _ORDERS.get(name) or order or type(node).arg_types:
        value = node.args.get(part)
        found += [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, exp.Expr)]
    return [each.this if isinstance(each, exp.TsOrDsToDate) and WRITTEN not in each.meta else each for each in found]
