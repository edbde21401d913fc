"""Why an expression is not supported, and what to write instead."""

from __future__ import annotations

from sqlglot import exp

from rejoinder import errors
from rejoinder.sql.functions.function_registry import meant_functions
from rejoinder.sql.parse.clauses import text_of
from rejoinder.sql.parse.foreign_names import foreign_function
from rejoinder.sql.types.terms import refuse

_NONDETERMINISTIC = "its value changes without a change of the inputs, so a view of it could never be kept up to date"
_NONDETERMINISTIC_NODES = (
    exp.Rand,
    exp.Randn,
    exp.Uuid,
    exp.CurrentTimestamp,
    exp.CurrentDate,
    exp.CurrentTime,
    exp.CurrentUser,
    exp.CurrentTimezone,
)
_NONDETERMINISTIC_NAMES = frozenset(
    [
        "now",
        "curdate",
        "random",
        "randstr",
        "uniform",
        "monotonically_increasing_id",
        "spark_partition_id",
        "input_file_name",
        "shuffle",
        "current_catalog",
        "current_database",
        "current_schema",
        "localtimestamp",
        "session_user",
        "user",
        "proctime",
        "current_row_timestamp",
        "current_watermark",
        "mz_now",
        "mz_logical_timestamp",
    ]
)
_ARRIVAL = "a join FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP takes rows as they are on arrival"
_OF_OTHERS = {
    "proctime": f"{_ARRIVAL}; elsewhere take the time from a column of the data",
    "current_row_timestamp": f"{_ARRIVAL}; elsewhere take the time from a column of the data",
    "current_watermark": "SHOW WATERMARKS lists watermarks; EMIT WHEN WATERMARK PAST … waits for one",
    "mz_now": "compare columns of time; with watermarks, a join or window keeps only rows that can still match",
    "mz_logical_timestamp": "compare columns of time; with watermarks, a join or window keeps only rows that can still "
    "match",
}
"""What to write instead of functions of Flink and Materialize."""
_LAST_DIGIT_NODES = (
    *(exp.Exp, exp.Ln, exp.Log, exp.Pow, exp.Cbrt),
    *(exp.Sin, exp.Cos, exp.Tan, exp.Cot, exp.Asin, exp.Acos, exp.Atan, exp.Atan2, exp.Sinh, exp.Cosh, exp.Tanh),
)
_REGEX_NODES = (
    exp.RegexpReplace,
    exp.RegexpExtractAll,
    exp.RegexpSplit,
    exp.RegexpCount,
    exp.RegexpInstr,
)
_ENRICH = "in a function of yours (ENRICH)"
_FORMAT_NODES = (exp.TimeToStr, exp.UnixToStr, exp.StrToTime)


def unsupported(node: exp.Expr) -> errors.Unsupported:
    """Make the error for a node that no function compiles."""
    text = text_of(node)
    name = text.split("(", 1)[0].strip().lower() if isinstance(node, exp.Func) and "(" in text else ""
    if isinstance(node, _NONDETERMINISTIC_NODES) or name in _NONDETERMINISTIC_NAMES:
        is_time = "time" in name or "date" in name or name == "now"
        if name in ("now", "current_timestamp"):
            hint = "in WHERE, compare a time with it: ts > current_timestamp() - INTERVAL 1 HOUR; or take a column"
            return errors.Unsupported(f"`{name}` is not supported here", detail=_NONDETERMINISTIC, hint=hint)
        hint = _OF_OTHERS.get(name) or f"take {'the time' if is_time else 'it'} from a column of the data"
        return errors.Unsupported(f"`{name or text}` is not supported in a view", detail=_NONDETERMINISTIC, hint=hint)
    if isinstance(node, exp.AggFunc):
        return refuse(
            node,
            f"the aggregate `{name}` is not supported here",
            foreign_function(name)
            or "aggregates stand in SELECT and HAVING, beside a GROUP BY; elsewhere, compute them in a subquery",
        )
    if isinstance(node, exp.Window):
        return refuse(
            node,
            "a window function is not supported here",
            "window functions stand in SELECT and QUALIFY; elsewhere, compute them in a subquery",
        )
    if isinstance(node, exp.Query) or (isinstance(node, exp.Exists) and isinstance(node.this, exp.Query)):
        return refuse(node, "a subquery in an expression is not supported", "join it in FROM")
    if isinstance(node, exp.Interval):
        return refuse(
            node, "an interval is supported beside a date or a timestamp only", "use it as in ts + INTERVAL 1 DAY"
        )
    if isinstance(node, _LAST_DIGIT_NODES):
        return refuse(
            node, f"`{name}` is not supported: its last digit differs from Spark's", "compute it when the view is read"
        )
    if isinstance(node, _REGEX_NODES):
        return refuse(
            node, f"`{name}` is not supported: it takes Java's regular expressions", "use split_part, replace or RLIKE"
        )
    if isinstance(node, _FORMAT_NODES):
        return refuse(node, f"`{name}` with a format is not supported", "CAST it, and use LEFT, SUBSTRING or EXTRACT")
    if isinstance(node, exp.Func) and name:
        hint = (
            foreign_function(name)
            or meant_functions(name)
            or f"compute it before the rows come, {_ENRICH}, or when the view is read"
        )
        return refuse(node, f"the function `{name}` is not supported", hint)
    if isinstance(node, exp.ILike):
        return refuse(node, "ILIKE is not supported", "write LOWER(text) LIKE 'pattern in lower case'")
    return refuse(node, "this is not supported in an expression")
