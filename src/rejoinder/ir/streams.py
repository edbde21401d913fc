"""Streams that Spark reads for a flow, and the generation of Spark's checkpoint that reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class StreamId:
    """A stream of a source. A source is one stream, or several if it is a DataFrame over several."""

    source: str
    """The identity of the source, which lasts as long as a view reads it."""
    number: int = 0

    def __str__(self) -> str:
        return f"{self.source}/{self.number}"

    @classmethod
    def from_text(cls, text: str) -> StreamId:
        """Read an identity from a manifest."""
        source, _, number = text.partition("/")
        return cls(source, int(number))


@dataclass(frozen=True)
class Generation:
    """A generation of Spark's checkpoint: a folder that one query uses."""

    number: int
    folder: str
    streams: tuple[StreamId, ...]
    """In the order of Spark's plan, in which a stream may appear twice."""
    header: tuple[str, ...] | None = None
    """The header of Spark's offset log, if Spark has state of its own."""

    def to_json(self) -> dict[str, Any]:
        """Return plain data for the manifest."""
        header = {} if self.header is None else {"header": list(self.header)}
        return {"number": self.number, "folder": self.folder, "sources": [*map(str, self.streams)], **header}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Generation:
        """Decode the result of `to_json`."""
        streams = tuple(map(StreamId.from_text, data["sources"]))
        header = tuple(data["header"]) if "header" in data else None
        return cls(int(data["number"]), str(data["folder"]), streams, header)
