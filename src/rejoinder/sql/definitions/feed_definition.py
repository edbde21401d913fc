"""A Delta table's change feed as a source, checked: a changelog whose records say by themselves what happens."""

from __future__ import annotations

from collections.abc import Mapping

from rejoinder.errors import InvalidSql, Unsupported
from rejoinder.ir.catalog import Kind

DELTA = "delta"
CHANGE_TYPE = "_change_type"
FEED_OPTIONS = ("path", "startingversion", "startingtimestamp", "maxfilespertrigger", "maxbytespertrigger")


def feed_options(name: str, kind: Kind, options: Mapping[str, str]) -> dict[str, str]:
    """The options of a source on a change feed, with the column that tells inserts from deletes."""
    listed = f"options: {', '.join(options) or 'none'}"
    if kind != "changelog":
        raise Unsupported(
            f"`{name}` USING delta is a {kind}",
            detail="a change feed tells which rows come and which go",
            hint="CREATE CHANGELOG: it adds up to the rows that the Delta table has",
        )
    if "op" in options or "diff" in options:
        raise InvalidSql(
            f"`{name}` USING delta has op or diff", detail=listed, hint=f"leave it out: it is {CHANGE_TYPE}"
        )
    if "startingversion" in options and not options["startingversion"].isdigit():
        raise InvalidSql(
            f"option `startingversion` of `{name}` is '{options['startingversion']}'",
            detail=listed,
            hint="the number of a version; without it the feed starts with all rows of now, as inserts",
        )
    return {**options, "op": CHANGE_TYPE}
