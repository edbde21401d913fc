"""Names that a declared function cannot have: those of SQL's own functions, in any place."""

from __future__ import annotations

import re

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from rejoinder.errors import DefinitionConflict, InvalidSql
from rejoinder.sql.bind.relations.conversions import FORMS as CONVERSIONS
from rejoinder.sql.bind.relations.enrich_call import NAME as ENRICH
from rejoinder.sql.bind.relations.generators import GENERATORS
from rejoinder.sql.bind.relations.table_functions import FORMS
from rejoinder.sql.functions.function_registry import SIGNATURES
from rejoinder.sql.functions.refused_functions import REASONS
from rejoinder.sql.functions.spark_names import SPARK_NAMES
from rejoinder.sql.parse.dialect import SparkSql

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KNOWN = {*SIGNATURES, *REASONS, *SPARK_NAMES, *GENERATORS, *map(str.lower, (*FORMS, *CONVERSIONS, ENRICH, "TABLE"))}


def refuse_known_name(name: str) -> None:
    """Raise a `PlanningError` for a name that cannot be that of a declared function."""
    if not _PLAIN.fullmatch(name) or len(name) > 128:
        raise InvalidSql(
            f"{name[:140]!r} is not a name for a function",
            detail="a name has letters, digits and underscores",
            hint="choose another name",
        )
    if name.lower() in _KNOWN or not _is_free(name):
        raise DefinitionConflict(
            f"`{name}` is a function of SQL",
            detail="a declared function cannot replace one of SQL, or of Spark",
            hint=f"choose another name, such as my_{name.lower()}",
        )


def _is_free(name: str) -> bool:
    """Whether a call of this name is read as it is written, and not as syntax."""
    try:
        node = sqlglot.parse_one(f"{name}(x)", read=SparkSql)
    except SqlglotError:
        return False
    return isinstance(node, exp.Anonymous) and node.name.lower() == name.lower()
