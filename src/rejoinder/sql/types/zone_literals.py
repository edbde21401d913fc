"""Names of time zones that the user wrote."""

from __future__ import annotations

from rejoinder.errors import InvalidSql
from rejoinder.kernels.zones.zone_names import zone_name


def checked_zone(text: str, place: str | None = None) -> str:
    """Return DuckDB's name of a zone. Raises `InvalidSql` if Spark knows no such zone."""
    name = zone_name(text)
    if name is None:
        raise InvalidSql(
            f"'{text}' is not the name of a time zone",
            detail=place,
            hint="write a region such as 'Europe/Berlin' (with these capitals), or an offset such as '+01:00'",
        )
    return name
