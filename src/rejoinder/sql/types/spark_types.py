"""Spark's types, as text and as Arrow types, and Spark's rules for bringing two of them together.

Every type that a relation can hold is one of `BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DECIMAL STRING BINARY
DATE TIME TIMESTAMP TIMESTAMP_NTZ ARRAY MAP STRUCT` and `INTERVAL DAY TO SECOND`; anything else is refused by its name.
The rules are those of ANSI mode.
"""

from __future__ import annotations

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from rejoinder import errors
from rejoinder.ir.type_names import is_integer as is_integer
from rejoinder.ir.type_names import spark_name as spark_name
from rejoinder.sql.parse.foreign_names import foreign_type

BOOLEAN = pa.bool_()
TINYINT = pa.int8()
SMALLINT = pa.int16()
INT = pa.int32()
BIGINT = pa.int64()
FLOAT = pa.float32()
DOUBLE = pa.float64()
STRING = pa.string()
BINARY = pa.binary()
DATE = pa.date32()
TIMESTAMP = pa.timestamp("us", tz="UTC")
TIMESTAMP_NTZ = pa.timestamp("us")
NULL = pa.null()
TIME = pa.time64("us")
DAY_TIME = pa.duration("us")
YEAR_MONTH = pa.duration("s")
"""Months. Arrow has no such type, so it stands for it within expressions, and no column can be of it."""
CALENDAR = pa.month_day_nano_interval()
"""Months, days and microseconds, within expressions only."""

MAX_PRECISION = 38

_PARSED: dict[exp.DType, pa.DataType] = {
    exp.DType.BOOLEAN: BOOLEAN,
    exp.DType.TINYINT: TINYINT,
    exp.DType.SMALLINT: SMALLINT,
    exp.DType.INT: INT,
    exp.DType.BIGINT: BIGINT,
    exp.DType.FLOAT: FLOAT,
    exp.DType.DOUBLE: DOUBLE,
    exp.DType.TEXT: STRING,
    exp.DType.VARCHAR: STRING,
    exp.DType.CHAR: STRING,
    exp.DType.BINARY: BINARY,
    exp.DType.DATE: DATE,
    # sqlglot reads Spark's TIMESTAMP as TIMESTAMPTZ in casts and as TIMESTAMP in the function `timestamp(x)`.
    exp.DType.TIMESTAMPTZ: TIMESTAMP,
    exp.DType.TIMESTAMPLTZ: TIMESTAMP,
    exp.DType.TIMESTAMP: TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: TIMESTAMP_NTZ,
}

_TEXTS = (exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR)
_INTEGER_PRECISION = {TINYINT: 3, SMALLINT: 5, INT: 10, BIGINT: 20}
_NUMERIC_ORDER = (TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE)


def parse_type(text: str) -> pa.DataType:
    """Read a Spark type. Raises `InvalidSql` for an unknown type, `Unsupported` for a type that is not supported.

    >>> parse_type("DECIMAL(10,2)"), parse_type("array<struct<a: int>>")
    (Decimal128Type(decimal128(10, 2)), ListType(list<element: struct<a: int32>>))
    """
    try:
        node = sqlglot.parse_one(text, into=exp.DataType, read="spark")
    except SqlglotError as failure:
        raise errors.InvalidSql(f"`{text}` is not a type", detail=str(failure).splitlines()[0]) from failure
    measured = next((part for part in node.find_all(exp.DataType) if part.this in _TEXTS and part.expressions), None)
    if measured is not None:  # in a CAST Spark does not look at the length either, but a column would be held to it
        raise errors.Unsupported(
            f"the length of `{measured.sql(dialect='spark')}` is not supported",
            hint="write STRING, and filter in a view by length(…)",
        )
    return arrow_type(node)


def arrow_type(node: exp.DataType) -> pa.DataType:
    """Map sqlglot's type (read with the dialect `spark`) to Arrow. Raises `Unsupported` by name."""
    kind = node.this
    if kind in _PARSED:
        return _PARSED[kind]
    if kind == exp.DType.TIME and all(part.name == "6" for part in node.expressions):
        return TIME
    if isinstance(kind, exp.Interval) and _is_day_time(kind):
        return DAY_TIME
    if kind == exp.DType.DECIMAL:
        return _parse_decimal(node)
    children = node.expressions
    if kind == exp.DType.ARRAY and len(children) == 1:
        return array_of(arrow_type(children[0]))
    if kind == exp.DType.MAP and len(children) == 2:
        return pa.map_(arrow_type(children[0]), arrow_type(children[1]))
    if kind == exp.DType.STRUCT and children and all(isinstance(child, exp.ColumnDef) for child in children):
        return pa.struct([pa.field(child.name, arrow_type(child.args["kind"])) for child in children])
    is_plain = isinstance(kind, exp.DType) and not children  # then as it was written: Spark's text of UUID is STRING
    raise errors.Unsupported(
        f"the type `{kind.value if is_plain else node.sql(dialect='spark')}` is not supported",
        hint=foreign_type(str(kind.value if isinstance(kind, exp.DType) else kind))
        or "use boolean, tinyint, smallint, int, bigint, float, double, decimal, string, binary, date, time, "
        "timestamp, timestamp_ntz, interval day to second, array, map or struct",
    )


def _is_day_time(node: exp.Interval) -> bool:
    unit = node.args.get("unit")
    if not isinstance(unit, exp.IntervalSpan):
        return False
    return (unit.this.name.upper(), unit.expression.name.upper()) == ("DAY", "SECOND")


def _parse_decimal(node: exp.DataType) -> pa.DataType:
    digits = [int(parameter.name) for parameter in node.expressions]
    precision, scale = (digits + [10, 0][len(digits) :])[:2]
    if not 1 <= precision <= MAX_PRECISION or not 0 <= scale <= precision:
        raise errors.Unsupported(
            f"`{node.sql(dialect='spark')}` has no such precision and scale",
            hint="DECIMAL(p, s) with 1 <= p <= 38 and s <= p",
        )
    return pa.decimal128(precision, scale)


def array_of(element: pa.DataType) -> pa.DataType:
    """Give the array type as Spark hands it over in Arrow: its item is called `element`."""
    return pa.list_(pa.field("element", element))


def is_decimal(kind: pa.DataType) -> bool:
    """Say whether a type is DECIMAL."""
    return bool(pa.types.is_decimal128(kind))


def is_fractional(kind: pa.DataType) -> bool:
    """Say whether a type is FLOAT, DOUBLE or DECIMAL."""
    return kind in (FLOAT, DOUBLE) or is_decimal(kind)


def is_numeric(kind: pa.DataType) -> bool:
    """Say whether a type is a number."""
    return is_integer(kind) or is_fractional(kind)


def is_datetime(kind: pa.DataType) -> bool:
    """Say whether a type is DATE or one of the two timestamps."""
    return kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def is_interval(kind: pa.DataType) -> bool:
    """Say whether a type is one of the three intervals."""
    return kind in (DAY_TIME, YEAR_MONTH, CALENDAR)


def is_nested(kind: pa.DataType) -> bool:
    """Say whether a type is ARRAY, MAP or STRUCT."""
    return bool(pa.types.is_nested(kind))


def decimal_for(kind: pa.DataType) -> pa.DataType:
    """Give the decimal that holds every value of an integer type, or the decimal itself."""
    return kind if is_decimal(kind) else pa.decimal128(_INTEGER_PRECISION[kind], 0)


def bounded_decimal(precision: int, scale: int) -> pa.DataType:
    """Cut a type down to 38 digits, of those before the point."""
    return pa.decimal128(min(precision, MAX_PRECISION), min(scale, MAX_PRECISION))


def adjusted_decimal(precision: int, scale: int) -> pa.DataType:
    """Cut the exact result type of an operation down to 38 digits as Spark does: digits before the point come first."""
    if precision <= MAX_PRECISION:
        return pa.decimal128(precision, scale)
    whole = precision - scale
    return pa.decimal128(MAX_PRECISION, max(MAX_PRECISION - whole, min(scale, 6)))


def common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Give the type that comparison, CASE, COALESCE and UNION bring both sides to (Spark's ANSI rules).

    Raises `TypeMismatch` where Spark refuses too.

    >>> common_type(pa.int32(), pa.string())
    DataType(int64)
    """
    wider = _wider(left, right)
    if wider is None:
        raise errors.TypeMismatch(
            f"`{spark_name(left)}` and `{spark_name(right)}` have no common type",
            hint="CAST one of them to the other's type",
        )
    return wider


def comparable(left: pa.DataType, right: pa.DataType) -> bool:
    """Say whether `=` and `<` are defined between two types (maps are not comparable with anything)."""
    wider = _wider(left, right)
    return wider is not None and not _holds_map(wider)


def key_type(left: pa.DataType, right: pa.DataType, *, names: tuple[str, str] = ("left", "right")) -> pa.DataType:
    """Give the type as which both sides of an equi-join key are hashed. Raises `TypeMismatch`, naming both.

    Integers of any width meet as BIGINT, so that arrangements of different widths are shared.
    """
    if is_integer(left) and is_integer(right):
        return BIGINT
    wider = _wider(left, right)
    mixes_text = STRING in (left, right) and left != right
    if wider is None or mixes_text or _holds_map(wider) or pa.types.is_null(wider):
        raise errors.TypeMismatch(
            f"`{names[0]}` and `{names[1]}` cannot be equal: {spark_name(left)} against {spark_name(right)}",
            detail="the two sides of a join key must have types that hash alike",
            hint=f"CAST one side, as in CAST({names[1]} AS {spark_name(left).upper()})",
        )
    return DOUBLE if wider == FLOAT else wider


def _wider(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    if is_numeric(left) and is_numeric(right):
        return _wider_number(left, right)
    if is_datetime(left) and is_datetime(right):
        return TIMESTAMP if TIMESTAMP in (left, right) else TIMESTAMP_NTZ
    if STRING in (left, right):
        return _beside_text(right if left == STRING else left)
    return _wider_nested(left, right)


def _wider_number(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if is_decimal(left) or is_decimal(right):
        if not (_is_exact(left) and _is_exact(right)):
            return DOUBLE
        kinds = decimal_for(left), decimal_for(right)
        scale = max(kind.scale for kind in kinds)
        precision = max(kind.precision - kind.scale for kind in kinds) + scale
        # Past 38 digits, those after the point go first, all of them if need be.
        return bounded_decimal(precision, max(scale - max(precision - MAX_PRECISION, 0), 0))
    wider = max(left, right, key=_NUMERIC_ORDER.index)
    # An integer beside a FLOAT would lose digits, so Spark goes to DOUBLE.
    return DOUBLE if wider == FLOAT else wider


def _is_exact(kind: pa.DataType) -> bool:
    return is_integer(kind) or is_decimal(kind)


def _beside_text(other: pa.DataType) -> pa.DataType | None:
    """Spark's ANSI rule: text is read as what stands beside it, numbers as BIGINT or DOUBLE."""
    if is_integer(other):
        return BIGINT
    if is_fractional(other):
        return DOUBLE
    return None if is_nested(other) else other


def _wider_nested(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    if pa.types.is_list(left) and pa.types.is_list(right):
        element = _wider(left.value_type, right.value_type)
        return None if element is None else array_of(element)
    if pa.types.is_struct(left) and pa.types.is_struct(right) and left.num_fields == right.num_fields:
        fields = []
        for ours, theirs in zip(left, right, strict=True):
            kind = _wider(ours.type, theirs.type)
            if kind is None or ours.name.lower() != theirs.name.lower():
                return None
            fields.append(pa.field(ours.name, kind))
        return pa.struct(fields)
    return None


def _holds_map(kind: pa.DataType) -> bool:
    """Whether a value is, or has in it, a map or a calendar interval: these cannot be compared."""
    if pa.types.is_map(kind) or kind == CALENDAR:
        return True
    if pa.types.is_list(kind):
        return _holds_map(kind.value_type)
    return pa.types.is_struct(kind) and any(_holds_map(field.type) for field in kind)
