"""The events of Nexmark: people, auctions and bids of an online auction, from a seed, column by column.

Of 50 consecutive events, 1 is a person, 3 are auctions and 46 are bids. Ids rise with the events. Half of the bids go
to one hot auction per hundred, three quarters of bids and auctions come from one hot person per hundred; the others
refer to recent auctions and people. Event times rise evenly; with `disorder_ms`, events arrive out of order by up to
that much.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]

START_MS = 1_767_225_600_000  # 2026-01-01 00:00 UTC
FIRST_ID = 1000
FIRST_CATEGORY, CATEGORIES = 10, 5
GROUP, PEOPLE, AUCTIONS = 50, 1, 3
"""Of so many events in a row, so many are people, and so many auctions; the others are bids."""
HOT = 100
"""One of so many ids is hot."""
ACTIVE_PEOPLE, OPEN_AUCTIONS = 1000, 100
STATES = ["AZ", "CA", "ID", "OR", "WA", "WY"]
CITIES = [
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
]
FIRST_NAMES = ["Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter"]
LAST_NAMES = ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"]
HOT_CHANNELS = ["Google", "Facebook", "Baidu", "Apple"]
OTHER_CHANNELS = 10_000


def events(
    count: int, *, seed: int = 42, per_second: int = 10_000, disorder_ms: int = 0, text: int = 100
) -> dict[str, pa.Table]:
    """Return the first `count` events as tables `person`, `auction` and `bid`, each with its rows in order of arrival.

    Column `event` is the number of the event in that order. `text` is the length of the filler of a bid (`extra`);
    people have twice as much, auctions five times.
    """
    rng = np.random.default_rng(seed)
    number = np.arange(count, dtype=np.int64)
    times = START_MS + number * 1000 // per_second
    arrival = np.argsort(times + rng.integers(0, disorder_ms + 1, count), kind="stable")
    place = np.empty(count, dtype=np.int64)
    place[arrival] = number
    offset = number % GROUP
    kinds = {
        "person": offset < PEOPLE,
        "auction": (offset >= PEOPLE) & (offset < PEOPLE + AUCTIONS),
        "bid": offset >= PEOPLE + AUCTIONS,
    }
    makers = {"person": _people, "auction": _auctions, "bid": _bids}
    tables = {}
    for name, chosen in kinds.items():
        own = number[chosen]
        columns = makers[name](rng, own, times[chosen], per_second, text)
        table = pa.table({"event": place[chosen], **columns})
        tables[name] = table.take(pc.sort_indices(table["event"]))
    return tables


def _people(rng: np.random.Generator, number: Numbers, times: Numbers, per_second: int, text: int) -> dict[str, Any]:
    size = len(number)
    first, last = _chosen(rng, FIRST_NAMES, size), _chosen(rng, LAST_NAMES, size)
    mail = pc.binary_join_element_wise(pc.utf8_lower(first), pc.utf8_lower(last), _digits(rng, size, 5), "")
    return {
        "id": FIRST_ID + _last_person(number),
        "name": pc.binary_join_element_wise(first, last, " "),
        "emailAddress": pc.binary_join_element_wise(mail, "@example.com", ""),
        "creditCard": pc.binary_join_element_wise(*(_digits(rng, size, 4) for _ in range(4)), " "),
        "city": _chosen(rng, CITIES, size),
        "state": _chosen(rng, STATES, size),
        "dateTime": _timestamps(times),
        "extra": _filler(rng, size, 2 * text),
    }


def _auctions(rng: np.random.Generator, number: Numbers, times: Numbers, per_second: int, text: int) -> dict[str, Any]:
    size = len(number)
    initial = _prices(rng, size)
    # about as many auctions are open at a time as bids may refer to
    horizon_ms = max(1, OPEN_AUCTIONS * GROUP // AUCTIONS * 1000 // per_second)
    return {
        "id": FIRST_ID + _last_auction(number),
        "itemName": _filler(rng, size, 20),
        "description": _filler(rng, size, 100),
        "initialBid": initial,
        "reserve": initial + _prices(rng, size),
        "dateTime": _timestamps(times),
        "expires": _timestamps(times + 1 + rng.integers(0, 2 * horizon_ms, size)),
        "seller": _person(rng, number, hot=0),
        "category": FIRST_CATEGORY + rng.integers(0, CATEGORIES, size),
        "extra": _filler(rng, size, 5 * text),
    }


def _bids(rng: np.random.Generator, number: Numbers, times: Numbers, per_second: int, text: int) -> dict[str, Any]:
    size = len(number)
    last = _last_auction(number)
    recent = rng.integers(np.maximum(last - OPEN_AUCTIONS, 0), last + 1)
    channel = rng.integers(0, 2 * OTHER_CHANNELS, size)
    is_hot = channel >= OTHER_CHANNELS
    names = np.where(is_hot, channel % len(HOT_CHANNELS), len(HOT_CHANNELS) + channel)
    listed = pa.array([*HOT_CHANNELS, *(f"channel-{i}" for i in range(OTHER_CHANNELS))])
    page = pc.binary_join_element_wise("https://www.nexmark.example", _filler(rng, size, 5), _filler(rng, size, 5), "/")
    page = pc.binary_join_element_wise(page, "item.htm?query=1", "/")
    marked = pc.binary_join_element_wise(page, "&channel_id=", pc.cast(pa.array(channel), pa.string()), "")
    return {
        "auction": FIRST_ID + np.where(rng.random(size) < 0.5, last // HOT * HOT, recent),
        "bidder": _person(rng, number, hot=1),
        "price": _prices(rng, size),
        "channel": listed.take(pa.array(names)),
        "url": pc.if_else(pa.array(is_hot), page, marked),
        "dateTime": _timestamps(times),
        "extra": _filler(rng, size, text),
    }


def _last_person(number: Numbers) -> Numbers:
    """The last person up to each event, counted from 0."""
    return number // GROUP


def _last_auction(number: Numbers) -> Numbers:
    """The last auction up to each event, counted from 0; 0 before the first."""
    within = np.clip(number % GROUP - PEOPLE, -1, AUCTIONS - 1)
    last: Numbers = np.maximum(number // GROUP * AUCTIONS + within, 0)
    return last


def _person(rng: np.random.Generator, number: Numbers, *, hot: int) -> Numbers:
    """A person for each event: in three of four cases a hot one, else one of the last active people."""
    last = _last_person(number)
    recent = rng.integers(np.maximum(last - ACTIVE_PEOPLE, 0), last + 1)
    hottest = np.minimum(last // HOT * HOT + hot, last)
    return FIRST_ID + np.where(rng.random(len(number)) < 0.75, hottest, recent)


def _prices(rng: np.random.Generator, size: int) -> Numbers:
    """From 1 to a million dollars, in cents: most are small."""
    return np.round(10 ** (rng.random(size) * 6) * 100).astype(np.int64)


def _chosen(rng: np.random.Generator, texts: list[str], size: int) -> pa.Array:
    return pa.array(texts).take(pa.array(rng.integers(0, len(texts), size)))


def _digits(rng: np.random.Generator, size: int, length: int) -> pa.Array:
    return pc.utf8_lpad(pc.cast(pa.array(rng.integers(0, 10**length, size)), pa.string()), length, "0")


def _filler(rng: np.random.Generator, size: int, length: int) -> pa.Array:
    """Random texts of one length."""
    length = max(1, length)
    letters = rng.integers(ord("a"), ord("z") + 1, size * length, dtype=np.uint8)
    ends = np.arange(size + 1, dtype=np.int64) * length
    texts = pa.LargeStringArray.from_buffers(size, pa.py_buffer(ends), pa.py_buffer(letters))
    return texts.cast(pa.string())


def _timestamps(times: Numbers) -> pa.Array:
    return pa.array(times * 1000, pa.int64()).cast(pa.timestamp("us"))
