"""Notices: what a user should know about an epoch that was committed all the same. Each is given once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rejoinder.secret_options import redacted_text


@dataclass
class Notices:
    """Remembers, as long as the process runs, which columns of which sources were reported."""

    _given: set[tuple[str, str]] = field(default_factory=set)

    def about(self, null_columns: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
        """The notices that are new: columns that are NULL in every record of a file, with that file, by source."""
        result = []
        for source, columns in null_columns.items():
            for column, path in columns.items():
                if (source, column) not in self._given:
                    self._given.add((source, column))
                    place = redacted_text(path)
                    result.append(
                        f"column `{column}` of `{source}` is NULL in every record of {place}: "
                        "check the name of the column against the keys of the file"
                    )
        return tuple(result)
