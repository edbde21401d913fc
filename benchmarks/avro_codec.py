"""What our Avro reader and writer cost against fastavro: the figures of ADR 0038.

fastavro is not a dependency. Install it into a folder of its own and run:

pip install --target build/fastavro fastavro && PYTHONPATH=build/fastavro python -m benchmarks.avro_codec
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from importlib import import_module
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa

from rejoinder.formats.avro.avro_reader import decode_avro
from rejoinder.formats.avro.avro_writer import encode_avro
from rejoinder.formats.avro.framed_records import decode_framed

RECORDS, ATTEMPTS, WORDS = 200_000, 5, 5_000
TYPES: dict[str, Any] = {
    "long": "long",
    "int": "int",
    "double": "double",
    "text": "string",
    "note": ["null", "string"],
    "price": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2},
    "at": {"type": "long", "logicalType": "timestamp-micros"},
    "tags": {"type": "array", "items": "string"},
}


def columns(numbers: np.random.Generator) -> dict[str, pa.Array]:
    """A column of each type."""
    words = pa.array([f"word {number}" for number in range(WORDS)])
    counts = numbers.integers(0, 5, RECORDS)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    cents = numbers.integers(0, 10**8, RECORDS)
    return {
        "long": pa.array(numbers.integers(0, 2**40, RECORDS)),
        "int": pa.array(numbers.integers(0, 100_000, RECORDS), pa.int32()),
        "double": pa.array(numbers.random(RECORDS)),
        "text": words.take(pa.array(numbers.integers(0, WORDS, RECORDS))),
        "note": words.take(pa.array(numbers.integers(0, WORDS, RECORDS), mask=numbers.random(RECORDS) < 0.2)),
        "price": pa.array(cents).cast(pa.decimal128(22, 2)).cast(pa.decimal128(12, 2)),
        "at": pa.array(1_760_000_000_000_000 + numbers.integers(0, 10**12, RECORDS)).view(pa.timestamp("us", "UTC")),
        "tags": pa.ListArray.from_arrays(offsets, words.take(pa.array(numbers.integers(0, WORDS, int(offsets[-1]))))),
    }


def best(work: Callable[[], Any]) -> tuple[float, Any]:
    """The CPU seconds of the best attempt, and the result."""
    result, least = None, float("inf")
    for _ in range(ATTEMPTS):
        start = time.process_time()
        result = work()
        least = min(least, time.process_time() - start)
    return least, result


def compare(groups: int) -> None:
    """Print the costs for records that have each type so many times."""
    fastavro = import_module("fastavro")
    numbers = np.random.default_rng(7)
    rows = pa.table({f"{name}{at}": column for at in range(groups) for name, column in columns(numbers).items()})
    fields = [{"name": f"{name}{at}", "type": type_} for at in range(groups) for name, type_ in TYPES.items()]
    schema = {"type": "record", "name": "R", "fields": fields}
    parsed = fastavro.parse_schema(schema)

    def dicts(values: pa.Array) -> list[dict[str, Any]]:
        return [fastavro.schemaless_reader(BytesIO(value), parsed, None) for value in values.to_pylist()]

    def written(records: list[dict[str, Any]]) -> list[bytes]:
        result = []
        for record in records:
            out = BytesIO()
            fastavro.schemaless_writer(out, parsed, record)
            result.append(out.getvalue())
        return result

    encoding, values = best(lambda: encode_avro(rows, json.dumps(schema)).cast(pa.binary()))
    decoding, table = best(lambda: decode_avro(values, json.dumps(schema)))
    to_dicts, _ = best(lambda: len(dicts(values)))
    to_arrow, other = best(lambda: pa.Table.from_pylist(dicts(values), table.schema))
    assert table.equals(rows) and other.equals(rows)
    del other
    records = rows.to_pylist()
    from_dicts, _ = best(lambda: len(written(records)))
    from_arrow, values = best(lambda: pa.array(written(rows.to_pylist()), pa.binary()))
    assert decode_avro(values, json.dumps(schema)).equals(rows)
    print(f"{len(fields)} fields, {values.nbytes // RECORDS} bytes a record, CPU seconds for {RECORDS:,} records:")
    print(f"  decode: ours {decoding:.2f}; fastavro {to_dicts:.2f} to dicts, {to_arrow:.2f} to Arrow")
    print(
        f"  encode: ours {encoding:.2f}; fastavro {from_dicts:.2f} from dicts, {from_arrow:.2f} from Arrow", flush=True
    )


def compare_ids() -> None:
    """Print the costs of records with one schema id, and of two that alternate."""
    rows = pa.table(columns(np.random.default_rng(7)))
    schema = json.dumps({"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in TYPES.items()]})
    one, two = (encode_avro(rows, schema, b"\0" + each.to_bytes(4, "big")).cast(pa.binary()) for each in (7, 9))
    places = np.arange(RECORDS)
    mixed = pa.concat_arrays([one, two]).take(pa.array(places + RECORDS * (places % 2)))
    single, _ = best(lambda: decode_framed(one, {7: schema}, list(rows.schema)))
    double, table = best(lambda: decode_framed(mixed, {7: schema, 9: schema}, list(rows.schema)))
    assert table.equals(rows)
    print(f"decode of {RECORDS:,} framed records: {single:.2f} with one schema id, {double:.2f} with two")


if __name__ == "__main__":
    compare_ids()
    compare(1)
    compare(5)
