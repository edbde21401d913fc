"""Notices: what a user should know about a committed epoch. Each is given once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rejoinder.secret_options import redacted_text


@dataclass
class Notices:
    """Records which columns of which sources were reported, as long as the process runs."""

    _reported: set[tuple[str, str]] = field(default_factory=set)

    def about(self, null_columns: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
        """Return the new notices about columns that are NULL in every record of a file; `null_columns` by source."""
        result = []
        for source, columns in null_columns.items():
            for column, path in columns.items():
                if (source, column) not in self._reported:
                    self._reported.add((source, column))
                    result.append(
                        f"column `{column}` of `{source}` is NULL in every record of {redacted_text(path)}: "
                        "check the name of the column against the keys of the file"
                    )
        return tuple(result)
