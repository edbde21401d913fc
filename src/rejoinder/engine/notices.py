"""Notices: what a user should know about a committed epoch, each given once; and warnings, at the user's line."""

from __future__ import annotations

import inspect
import warnings
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


def warn(note: str | None) -> None:
    """Warn of something, at the line outside this package that led to it. None: there is nothing to say."""
    if note is not None:
        frame, level = inspect.currentframe(), 1
        while frame is not None and frame.f_globals.get("__name__", "").startswith("rejoinder."):
            frame, level = frame.f_back, level + 1
        warnings.warn(note, stacklevel=level)
