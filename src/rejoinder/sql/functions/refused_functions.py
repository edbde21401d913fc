"""Functions of Spark that are not supported on purpose, each with the reason and what to write instead.

Also names of `pyspark.sql.functions` that SQL writes in another way. The error for a function, the list in the
documentation and the score follow from these tables.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RefusedFunctions:
    """Names that are refused for one reason."""

    names: tuple[str, ...]
    reason: str
    """Why, as the detail of an error."""
    instead: str
    """What to write instead, as the hint of an error."""


@dataclass(frozen=True)
class Spelling:
    """Names of the Python API that SQL writes in another way."""

    names: tuple[str, ...]
    how: str
    example: str
    """A query over `s (k STRING, n INT, xs ARRAY<INT>, ps ARRAY<STRUCT<a: INT>>)`. The tests plan it."""


CHANGING = "its value changes without a change of the inputs, so a view of it could never be kept up to date"
_SKETCH = "a sketch is approximate, and a retraction cannot be taken out of it"
_EXACT = "exact aggregates: COUNT(DISTINCT x), percentile(x, p), hll_sketch_estimate(hll_sketch_agg(x))"
_TYPE = "there is no such type of column"
_API = "it is a function of the Python API that makes no value of a row"


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ARRIVAL = "a join FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP takes rows as they are on arrival"

REFUSED = (
    RefusedFunctions(
        _names("now current_timestamp localtimestamp"),
        CHANGING,
        "in WHERE, compare a time with it: ts > current_timestamp() - INTERVAL 1 HOUR; or take a column",
    ),
    RefusedFunctions(_names("curdate current_date current_time"), CHANGING, "take the time from a column of the data"),
    RefusedFunctions(
        _names(
            """
            rand randn random randstr uniform uuid shuffle monotonically_increasing_id spark_partition_id
            input_file_name input_file_block_length input_file_block_start current_catalog current_database
            current_path current_schema current_user session_user user version
            """
        ),
        CHANGING,
        "take it from a column of the data",
    ),
    RefusedFunctions(
        ("proctime", "current_row_timestamp"),
        CHANGING,
        f"{_ARRIVAL}; elsewhere take the time from a column of the data",
    ),
    RefusedFunctions(
        ("current_watermark",),
        CHANGING,
        "SHOW WATERMARKS lists watermarks; EMIT WHEN WATERMARK PAST … waits for one",
    ),
    RefusedFunctions(
        ("mz_now", "mz_logical_timestamp"),
        CHANGING,
        "in WHERE, compare a time with the current one: ts > current_timestamp() - INTERVAL 1 HOUR",
    ),
    RefusedFunctions(
        _names(
            """
            count_min_sketch histogram_numeric
            hll_union hll_union_agg
            kll_merge_agg_bigint kll_merge_agg_double kll_merge_agg_float
            kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float
            kll_sketch_to_string_bigint kll_sketch_to_string_double kll_sketch_to_string_float
            theta_difference theta_intersection theta_intersection_agg theta_union theta_union_agg
            tuple_difference_double tuple_difference_integer tuple_difference_theta_double
            tuple_difference_theta_integer tuple_intersection_agg_double tuple_intersection_agg_integer
            tuple_intersection_double tuple_intersection_integer tuple_intersection_theta_double
            tuple_intersection_theta_integer tuple_sketch_theta_double
            tuple_sketch_theta_integer
            tuple_union_agg_double tuple_union_agg_integer tuple_union_double tuple_union_integer
            tuple_union_theta_double tuple_union_theta_integer
            """
        ),
        _SKETCH,
        _EXACT,
    ),
    RefusedFunctions(
        _names(
            """
            is_valid_variant is_variant_null parse_json schema_of_variant schema_of_variant_agg to_variant_object
            try_parse_json try_variant_get variant_get
            """
        ),
        f"{_TYPE} as VARIANT",
        "keep the JSON text, and read it with get_json_object",
    ),
    RefusedFunctions(
        _names("st_asbinary st_geogfromwkb st_geomfromwkb st_setsrid st_srid"),
        f"{_TYPE} as GEOMETRY",
        "keep BINARY (WKB), and compute it when the view is read",
    ),
    RefusedFunctions(
        _names(
            """
            from_xml schema_of_xml to_xml xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long xpath_number
            xpath_short xpath_string
            """
        ),
        "XML is not supported",
        "convert it to JSON or columns before the rows come",
    ),
    RefusedFunctions(
        _names("java_method reflect try_reflect"),
        "it calls Java, and views run without a JVM",
        "write a function (ENRICH)",
    ),
    RefusedFunctions(
        _names("aes_encrypt aes_decrypt try_aes_decrypt"),
        "a key in the text of a view would be stored with it",
        "encrypt before the rows come, or when the view is read",
    ),
    RefusedFunctions(_names("collate collation"), "collations are not supported", "compare LOWER(text)"),
    RefusedFunctions(
        _names(
            """
            AnalyzeArgument AnalyzeResult ArrowUDFType OrderingColumn PandasUDFType PartitioningColumn SelectedColumn
            SkipRestOfInputTableException UserDefinedFunction UserDefinedTableFunction arrow_udf arrow_udtf pandas_udf
            udf udtf unwrap_udt
            """
        ),
        _API,
        "declare functions of yours with CREATE FUNCTION, and call them by name",
    ),
    RefusedFunctions(
        _names("broadcast"), "it is a hint for Spark's optimizer", "leave it out: a view plans its own joins"
    ),
    RefusedFunctions(
        _names("bucket days hours months years"),
        "it is a partition transform of tables, and has no value",
        "date_trunc('day', ts)",
    ),
)

_ORDERED = "SELECT k, row_number() OVER (PARTITION BY k ORDER BY n {}) AS x FROM s"
_RANKED = "SELECT k, {}() OVER (PARTITION BY k ORDER BY n) AS x FROM s"
_MOVED = "SELECT k, {}(n) OVER (PARTITION BY k ORDER BY n) AS x FROM s"

_NTH = "SELECT k, nth_value(n, 2) OVER (PARTITION BY k ORDER BY n) AS x FROM s"

SPELLINGS = (
    *(
        Spelling((name,), f"`ORDER BY x {order}`", _ORDERED.format(order))
        for name, order in (
            ("asc", "ASC"),
            ("asc_nulls_first", "ASC NULLS FIRST"),
            ("asc_nulls_last", "ASC NULLS LAST"),
            ("desc", "DESC"),
            ("desc_nulls_first", "DESC NULLS FIRST"),
            ("desc_nulls_last", "DESC NULLS LAST"),
        )
    ),
    Spelling(("col", "column"), "the name of the column", "SELECT k FROM s"),
    Spelling(("lit",), "the literal", "SELECT k, 1 AS x FROM s"),
    Spelling(
        ("expr", "call_function", "call_udf"),
        "the expression, or the call by its name",
        "SELECT k, upper(k) AS x FROM s",
    ),
    Spelling(("when",), "`CASE WHEN condition THEN x END`", "SELECT k, CASE WHEN n > 1 THEN 1 END AS x FROM s"),
    Spelling(("create_map",), "`map(k, v)`", "SELECT k, map(k, n) AS x FROM s"),
    Spelling(
        ("timestamp_add",),
        "`timestampadd(DAY, n, time)`",
        "SELECT k, timestampadd(DAY, n, TIMESTAMP '2024-02-29 10:00:00') AS x FROM s",
    ),
    Spelling(
        ("timestamp_diff",),
        "`timestampdiff(DAY, start_time, end_time)`",
        "SELECT k, timestampdiff(DAY, DATE '2024-02-28', date_add(DATE '2024-02-29', n)) AS x FROM s",
    ),
    Spelling(("bitwise_not",), "`~x`", "SELECT k, ~n AS x FROM s"),
    Spelling(("negate",), "`-x`", "SELECT k, -n AS x FROM s"),
    Spelling(("count_distinct",), "`COUNT(DISTINCT x)`", "SELECT k, COUNT(DISTINCT n) AS x FROM s GROUP BY k"),
    *(
        Spelling(
            (f"{name}_distinct",),
            f"`{name}(DISTINCT x, separator)`",
            f"SELECT k, {name}(DISTINCT k, ',') AS x FROM s GROUP BY k",
        )
        for name in ("listagg", "string_agg")
    ),
    *(
        Spelling(
            (sketch,), f"`{estimate}({sketch}(x))`", f"SELECT k, {estimate}({sketch}({of})) AS x FROM s GROUP BY k"
        )
        for sketch, estimate, of in (
            ("hll_sketch_agg", "hll_sketch_estimate", "n"),
            ("theta_sketch_agg", "theta_sketch_estimate", "n"),
            ("kll_sketch_agg_bigint", "kll_sketch_get_n_bigint", "n"),
            ("kll_sketch_agg_double", "kll_sketch_get_n_double", "CAST(n AS DOUBLE)"),
            ("kll_sketch_agg_float", "kll_sketch_get_n_float", "CAST(n AS FLOAT)"),
            ("tuple_sketch_agg_double", "tuple_sketch_estimate_double", "k, CAST(n AS DOUBLE)"),
            ("tuple_sketch_agg_integer", "tuple_sketch_estimate_integer", "k, n"),
        )
    ),
    Spelling(
        ("json_tuple",),
        "`LATERAL VIEW json_tuple(text, 'a', 'b')`, also in SELECT",
        "SELECT k, a, b FROM s LATERAL VIEW json_tuple(k, 'a', 'b') t AS a, b",
    ),
    Spelling(("sum_distinct",), "`SUM(DISTINCT x)`", "SELECT k, SUM(DISTINCT n) AS x FROM s GROUP BY k"),
    Spelling(
        ("grouping",), "`grouping(x)` beside GROUPING SETS", "SELECT k, grouping(k) AS x FROM s GROUP BY ROLLUP (k)"
    ),
    Spelling(
        ("grouping_id",),
        "`grouping_id()` beside GROUPING SETS",
        "SELECT k, grouping_id() AS x FROM s GROUP BY ROLLUP (k)",
    ),
    *(
        Spelling((name,), f"`{name}()` OVER (…)", _RANKED.format(name))
        for name in ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist")
    ),
    Spelling(("ntile",), "`ntile(n)` OVER (…)", "SELECT k, ntile(2) OVER (PARTITION BY k ORDER BY n) AS x FROM s"),
    *(Spelling((name,), f"`{name}(x)` OVER (…)", _MOVED.format(name)) for name in ("lag", "lead")),
    Spelling(("nth_value",), "`nth_value(x, n)` OVER (…)", _NTH),
    *(
        Spelling((name,), f"`LATERAL VIEW {name}(xs)`, also in SELECT", f"SELECT k, {name}(xs) AS x FROM s")
        for name in ("explode", "explode_outer")
    ),
    *(
        Spelling((name,), f"`LATERAL VIEW {name}(xs)`", f"SELECT k, x FROM s LATERAL VIEW {name}(xs) t AS p, x")
        for name in ("posexplode", "posexplode_outer")
    ),
    *(
        Spelling((name,), f"`LATERAL VIEW {name}(structs)`", f"SELECT k, a FROM s LATERAL VIEW {name}(ps) t AS a")
        for name in ("inline", "inline_outer")
    ),
    Spelling(("stack",), "`LATERAL VIEW stack(n, x, y)`", "SELECT k, x FROM s LATERAL VIEW stack(2, n, 1) t AS x"),
)

REASONS: dict[str, RefusedFunctions] = {name: entry for entry in REFUSED for name in entry.names}
SPELLED: dict[str, Spelling] = {name: spelling for spelling in SPELLINGS for name in spelling.names}
