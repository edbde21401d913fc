"""Apply SET TIME ZONE to a catalog."""

from __future__ import annotations

from dataclasses import replace

from rejoinder.errors import DefinitionConflict
from rejoinder.ir.catalog import Catalog
from rejoinder.kernels.zones.zone_offsets import arrow_zone
from rejoinder.sql.statements.statement_parser import SetTimeZone


def with_time_zone(catalog: Catalog, statement: SetTimeZone) -> Catalog:
    """Return the catalog in a zone. Definitions were bound in the present one, so none may exist."""
    if catalog.relations and statement.zone != catalog.time_zone:
        names = ", ".join(relation.name for relation in catalog.relations)
        raise DefinitionConflict(
            f"the time zone of this flow is {arrow_zone(catalog.time_zone)}, not {arrow_zone(statement.zone)}",
            detail=f"defined in it: {names}",
            hint="SET TIME ZONE before the first definition of a flow, or use another state directory",
        )
    return replace(catalog, time_zone=statement.zone)
