"""Random catalogs with their batch answers: views over two streams and a table, each with the same query in Python.

The batch answer is a function of what the sources hold after an epoch (`Content`), written the slow and obvious way.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

Row = Mapping[str, int]
Bag = Counter[tuple[object, ...]]
DELAY = 4
EVERY_MS = 10_000
INPUTS = "/simulated"
SOURCES = {
    "o": f"CREATE STREAM o (id BIGINT, k BIGINT, x BIGINT, t BIGINT, WATERMARK t DELAY OF {DELAY})",
    "p": f"CREATE STREAM p (id BIGINT, k BIGINT, x BIGINT, t BIGINT, WATERMARK t DELAY OF {DELAY})",
    "c": "CREATE TABLE c (k BIGINT, id BIGINT, PRIMARY KEY (k))",
}


@dataclass(frozen=True)
class Content:
    """What the sources hold after an epoch: all rows, those that were on time, and where the watermarks are."""

    epoch: int = -1
    time_ms: int = 0
    rows: Mapping[str, tuple[Row, ...]] = field(default_factory=lambda: dict.fromkeys(SOURCES, ()))
    on_time: Mapping[str, tuple[Row, ...]] = field(default_factory=lambda: dict.fromkeys(SOURCES, ()))
    watermarks: Mapping[str, int] = field(default_factory=dict)
    before: Content | None = None

    def after(self, epoch: int, time_ms: int, arrived: list[tuple[str, Row, int]]) -> Content:
        """What they hold after one more epoch with these rows."""
        rows = {name: list(held) for name, held in self.rows.items()}
        on_time = {name: list(held) for name, held in self.on_time.items()}
        watermarks = dict(self.watermarks)
        for source, row, sign in arrived:
            if source == "c":
                rows[source] = [held for held in rows[source] if held["k"] != row["k"]] + ([row] if sign > 0 else [])
                continue
            rows[source].append(row)
            if row["t"] >= self.watermarks.get(source, row["t"]):
                on_time[source].append(row)
            watermarks[source] = max(watermarks.get(source, row["t"] - DELAY), row["t"] - DELAY)
        on_time["c"] = rows["c"]
        packed = [{name: tuple(held) for name, held in each.items()} for each in (rows, on_time)]
        return Content(epoch, time_ms, packed[0], packed[1], watermarks, self)

    def for_view(self, created: int) -> Content:
        """The content as a view sees it that was created after an epoch: none of the rows of before is late for it."""
        first = self.at(created)
        later = {name: held[len(first.on_time[name]) :] for name, held in self.on_time.items()}
        on_time = {name: first.rows[name] + later[name] for name in ("o", "p")}
        return replace(self, on_time={**on_time, "c": self.rows["c"]})

    def at(self, epoch: int) -> Content:
        """What they held after an earlier epoch."""
        content = self
        while content.epoch > epoch and content.before is not None:
            content = content.before
        return content


@dataclass(frozen=True)
class ViewSpec:
    """A view: its query, which sources it reads, and the answer of a batch run."""

    name: str
    query: str
    sources: str
    batch: Callable[[Content], Bag]

    @property
    def ddl(self) -> str:
        """The statement that makes it."""
        return f"CREATE VIEW IF NOT EXISTS {self.name} AS {self.query}"


def _pairs(content: Content, left: str, right: str, within: int | None = None) -> list[tuple[Row, Row]]:
    held = content.rows if within is None else content.on_time
    pairs = [(a, b) for a in held[left] for b in held[right] if a["k"] == b["k"]]
    return pairs if within is None else [(a, b) for a, b in pairs if a["t"] <= b["t"] <= a["t"] + within]


def _inner(content: Content) -> Bag:
    return Counter((a["id"], a["x"], b["id"]) for a, b in _pairs(content, "o", "c"))


def _left(content: Content) -> Bag:
    found = _pairs(content, "o", "c")
    lonely = [row for row in content.rows["o"] if row["k"] not in {row["k"] for row in content.rows["c"]}]
    return Counter((a["id"], b["id"]) for a, b in found) + Counter((row["id"], None) for row in lonely)


def _anti(content: Content) -> Bag:
    known = {row["k"] for row in content.rows["c"]}
    return Counter((row["id"],) for row in content.rows["o"] if row["k"] not in known)


def _streams(content: Content) -> Bag:
    return Counter((a["id"], b["id"]) for a, b in _pairs(content, "o", "p"))


def _three(content: Content) -> Bag:
    of_key = {row["k"]: row["id"] for row in content.rows["c"]}
    pairs = _pairs(content, "o", "p")
    return Counter((a["id"], b["id"], of_key[a["k"]]) for a, b in pairs if a["k"] in of_key)


def _groups(content: Content) -> Bag:
    keys = sorted({row["k"] for row in content.rows["o"]})
    listed = {key: [row["x"] for row in content.rows["o"] if row["k"] == key] for key in keys}
    return Counter((key, len(values), sum(values)) for key, values in listed.items())


def _distinct(content: Content) -> Bag:
    return Counter({(row["k"],): 1 for name in "op" for row in content.rows[name]})


def _bounded(content: Content) -> Bag:
    return Counter((a["id"], b["id"]) for a, b in _pairs(content, "o", "p", within=3))


def _every(content: Content) -> Bag:
    """The groups as they were at the last tick of the clock that this epoch has reached."""
    shown: Content | None = content
    while shown is not None and -(-shown.time_ms // EVERY_MS) * EVERY_MS > content.time_ms:
        shown = shown.before
    return Counter() if shown is None else _groups(shown)


def _past(content: Content) -> Bag:
    """Counts per time, of times that the watermark has passed."""
    times = Counter(row["t"] for row in content.on_time["o"])
    reached = content.watermarks.get("o", -(10**9))
    return Counter((time, count) for time, count in times.items() if time < reached)


TEMPLATES: tuple[tuple[str, str, str, Callable[[Content], Bag]], ...] = (
    ("inner_join", "SELECT o.id, o.x, c.id AS cid FROM o JOIN c ON o.k = c.k", "oc", _inner),
    ("left_join", "SELECT o.id, c.id AS cid FROM o LEFT JOIN c ON o.k = c.k", "oc", _left),
    ("anti_join", "SELECT o.id FROM o LEFT ANTI JOIN c ON o.k = c.k", "oc", _anti),
    ("stream_join", "SELECT o.id AS a, p.id AS b FROM o JOIN p ON o.k = p.k", "op", _streams),
    (
        "three_way",
        "SELECT o.id AS a, p.id AS b, c.id AS d FROM o JOIN p ON o.k = p.k JOIN c ON o.k = c.k",
        "opc",
        _three,
    ),
    ("groups", "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM o GROUP BY k", "o", _groups),
    ("keys", "SELECT DISTINCT k FROM (SELECT k FROM o UNION ALL SELECT k FROM p)", "op", _distinct),
    (
        "bounded_join",
        "SELECT o.id AS a, p.id AS b FROM o JOIN p ON o.k = p.k AND p.t BETWEEN o.t AND o.t + 3",
        "op",
        _bounded,
    ),
    ("every", "SELECT k, COUNT(*) AS n, SUM(x) AS s FROM o GROUP BY k EMIT EVERY INTERVAL 10 SECONDS", "o", _every),
    ("past", "SELECT t, COUNT(*) AS n FROM o GROUP BY t EMIT WHEN WATERMARK PAST t", "o", _past),
)


@dataclass(frozen=True)
class SinkSpec:
    """A sink of a view: `json` or `parquet` files, or a function."""

    name: str
    view: str
    format: str


@dataclass
class Flow:
    """One catalog, and the rows that come in."""

    views: tuple[ViewSpec, ...]
    sinks: tuple[SinkSpec, ...]
    files: frozenset[str] = frozenset()
    """The sources that read files. The others get rows from drivers."""
    passing: ViewSpec | None = None
    """A view that is created, dropped and created again. Other views read its sources."""
    per_epoch: int = 100
    """How many files of a source an epoch takes."""
    number: int = 0

    @property
    def sources(self) -> list[str]:
        """The sources that views read."""
        return sorted({source for view in self.views for source in view.sources})

    @property
    def all_views(self) -> tuple[ViewSpec, ...]:
        """All views that there may be."""
        return self.views if self.passing is None else (*self.views, self.passing)

    def source_ddl(self, source: str) -> str:
        """The statement that makes a source."""
        if source not in self.files:
            return SOURCES[source]
        return f"{SOURCES[source]} USING json OPTIONS (path '{INPUTS}/{source}', maxFilesPerTrigger '{self.per_epoch}')"

    def rows(self, dice: random.Random, *, in_files: bool, many: bool = False) -> list[tuple[str, Row, int]]:
        """Rows that arrive together. Each has a number of its own, so that one that arrives twice is seen."""
        sources = [source for source in self.sources if (source in self.files) == in_files]
        if not sources:
            return []
        return [self._row(dice, dice.choice(sources)) for _ in range(6 if many else dice.choice([0, 1, 1, 2, 3]))]

    def _row(self, dice: random.Random, source: str) -> tuple[str, Row, int]:
        self.number += 1
        if source == "c":
            is_deleted = source not in self.files and dice.random() < 0.2
            return source, {"k": dice.randrange(4), "id": self.number}, -1 if is_deleted else 1
        time = max(0, self.number // 2 + dice.randrange(-6, 4))
        row = {"id": self.number, "k": dice.randrange(4), "x": dice.randrange(-5, 6), "t": time}
        return source, row, 1


def draw(dice: random.Random) -> Flow:
    """Draw a catalog of one or two views with up to two sinks, and perhaps a view that comes and goes."""
    chosen = dice.sample(TEMPLATES, dice.choice([1, 1, 2]))
    views = tuple(ViewSpec(*template) for template in chosen)
    formats = dice.sample(["json", "json", "parquet", "function", "function"], dice.choice([0, 1, 1, 2]))
    sinks = tuple(SinkSpec(f"sink{at}", dice.choice(views).name, kind) for at, kind in enumerate(formats))
    sources = {source for view in views for source in view.sources}
    files = frozenset(source for source in sorted(sources) if dice.random() < 0.4)
    others = [each for each in TEMPLATES if each not in chosen and each[0] != "every" and set(each[2]) <= sources]
    passing = ViewSpec(*dice.choice(others)) if others and dice.random() < 0.5 else None
    return Flow(views, sinks, files, passing, per_epoch=dice.choice([100, 100, 2]))
