"""The ALTER statements that turn a stored source into another declaration, for hints."""

from __future__ import annotations

from rejoinder.ir.catalog import Source
from rejoinder.sql.types.spark_types import spark_name


def alter_hint(stored: Source, given: Source) -> str | None:
    """Return the statements that make a stored source what a text declares; None if there are none.

    They keep the state. A column with another name counts as one that is dropped and one that is added.
    """
    if (stored.kind, stored.format, stored.primary_key) != (given.kind, given.format, given.primary_key):
        return None
    start, result = f"ALTER {stored.kind.upper()} {stored.name}", []
    old, new = ({field.name: field.type for field in source.schema} for source in (stored, given))
    result += [f"{start} DROP COLUMN {name} PURGE" for name in old if name not in new]
    result += [f"{start} ADD COLUMN {name} {spark_name(kind)}" for name, kind in new.items() if name not in old]
    result += [
        f"{start} ALTER COLUMN {name} TYPE {spark_name(kind)}"
        for name, kind in new.items()
        if name in old and old[name] != kind
    ]
    result += [
        f"{start} SET WATERMARK {name} DELAY OF …"
        for name, delay in given.watermarks.items()
        if stored.watermarks.get(name) not in (None, delay)
    ]
    options = [name for name, value in given.options.items() if stored.options.get(name) != value]
    result += [f"{start} SET OPTIONS ({name} '…')" for name in options]
    return "; ".join(result) + " changes it and keeps its state" if result else None
