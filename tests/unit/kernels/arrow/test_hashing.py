"""Hashes: pinned for ever, the same for equal values, the same however a column lies in memory."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rejoinder.kernels.arrow.hashing import NULL_HASH, hash_rows, is_exact, mix
from rejoinder.sql.types.spark_types import parse_type
from tests.unit.kernels.arrow.tables import NESTED, TYPES, array_of, arrays, samples

# Hashes are part of the state on disk. If this table has to change, so has the version of the state's format.
PINNED = {
    "TINYINT": "0000000000000000 5692161d100b05e5 dbd238973a2b148a 1e535eede31428f0 b4d055fcf2cbbd7b 8b232d482752869d "
    "a09d66d4686ad125 6a09e667f3bcc909",
    "SMALLINT": "0000000000000000 5692161d100b05e5 dbd238973a2b148a 1e535eede31428f0 b4d055fcf2cbbd7b bb5d76830b04460b "
    "10a17e36788e68e3 6a09e667f3bcc909",
    "INT": "0000000000000000 5692161d100b05e5 dbd238973a2b148a 1e535eede31428f0 b4d055fcf2cbbd7b a58397ee4016ac9c "
    "7b313d2783d96d8c 6a09e667f3bcc909",
    "BIGINT": "0000000000000000 5692161d100b05e5 dbd238973a2b148a 1e535eede31428f0 b4d055fcf2cbbd7b 25c26ea579cea98a "
    "5a682afe7965debd 2a6cb83aca5988fc 709cf374e67c56aa 6a09e667f3bcc909",
    "FLOAT": "0000000000000000 0000000000000000 e72b41d4576e3468 469bf2dcc1aa179b ce5683aaaedc68d0 f35a23197f8fa277 "
    "b87cc595be63a19b 6a09e667f3bcc909",
    "DOUBLE": "0000000000000000 0000000000000000 e72b41d4576e3468 469bf2dcc1aa179b ce5683aaaedc68d0 f35a23197f8fa277 "
    "21b06322a3ba6d47 a469536ddec11aea 6a09e667f3bcc909",
    "DECIMAL(10,2)": "0000000000000000 ea2bdc8bc10298ed 11c64d13a4a63c1b 4c78f8d5ebf7df8e 6a09e667f3bcc909",
    "DECIMAL(20,4)": "0000000000000000 cdbb1858ea1c4318 418f0c1a9a11e26b ab910d4d8fe14353 418f0c1a9a11e26b "
    "aafd7b8c5d1a4384 6a09e667f3bcc909",
    "STRING": "48218226ff3cd4bf 142e2bbd2d46af3c eb9fdd2d7f46dbe1 5d95f2b9d30ddfce 62be5b1c81ec5bb2 9df8ac57ec9bbcf8 "
    "0a652339a031ba3b 61d5e3ecc83b6b0d a3d1169b77a7ec54 6a09e667f3bcc909",
    "DATE": "ed7ac6cce1d5c1ea 0000000000000000 b66d7f24f36f1de0 b45cab22cf5784c5 6a09e667f3bcc909",
    "TIMESTAMP": "b4d055fcf2cbbd7b 915cffc9322a0240 6b0f6b80eff2ae63 5190b2b82ebb6161 6a09e667f3bcc909",
    "TIMESTAMP_NTZ": "b4d055fcf2cbbd7b 915cffc9322a0240 6b0f6b80eff2ae63 5190b2b82ebb6161 6a09e667f3bcc909",
    "BOOLEAN": "0000000000000000 5692161d100b05e5 6a09e667f3bcc909",
    "BINARY": "48218226ff3cd4bf a706dd2f4d197e6f b382a305f4414f5e e0e03b8a8abe1d73 81db363212fc18d7 6a09e667f3bcc909",
    "ARRAY<INT>": "0000000000000000 6ea221176c5ccbd2 d6f42e1d1b07e36d 31d36683c8871186 50aad23617eb6101 "
    "9356ce46c7ca8704 6a09e667f3bcc909",
    "ARRAY<STRING>": "0000000000000000 7a108e0c048698ee 644840f8ecc76ca2 d4db5252076faa36 87af7f20c6fe71e5 "
    "6a09e667f3bcc909",
    "STRUCT<a: INT, b: STRING>": "781a724d449c3464 d8f788c419ee5846 58bbe4ca7ad4d812 6a09e667f3bcc909",
    "MAP<STRING, INT>": "5ddf0f3efcf8a7a2 a2035644879bcc08 2cf7d04a2bdda659 0000000000000000 6a09e667f3bcc909",
    "ARRAY<STRUCT<a: DOUBLE>>": "9d6089f9eaa30b63 50aad23617eb6101 0000000000000000 6a09e667f3bcc909",
}
PINNED_LENGTHS = {
    0: 0x48218226FF3CD4BF,
    7: 0x57EE125C29CCA8BF,
    8: 0x262D572A0C59F3D7,
    9: 0xC4EBDDEF88CDD5F2,
    511: 0xDCA43E3E9DF142D8,
    512: 0xFF1144491C0E30D6,
    513: 0xB02202C9C2C2313E,
    1700: 0x1F36EFE3C01338E6,
}
PINNED_PAIRS = "471a8df28c87ecac baef8a5b825ff1ff"


def hashed(*columns: pa.Array) -> list[int]:
    return [int(value) for value in hash_rows(columns, len(columns[0]))]


@pytest.mark.parametrize("name", TYPES)
def test_the_hash_of_a_value_never_changes(name: str) -> None:
    values = samples(name)
    assert " ".join(f"{value:016x}" for value in hashed(array_of(name, values))) == PINNED[name]


def test_the_hash_of_a_text_of_any_length_never_changes() -> None:
    texts = [("0123456789" * 170)[:length] for length in PINNED_LENGTHS]
    assert hashed(pa.array(texts)) == list(PINNED_LENGTHS.values())
    assert [hashed(pa.array([text]))[0] for text in texts] == list(PINNED_LENGTHS.values())


def test_the_hash_of_several_columns_never_changes() -> None:
    pairs = hashed(array_of("INT", [1, 2]), array_of("STRING", ["a", None]))
    assert " ".join(f"{value:016x}" for value in pairs) == PINNED_PAIRS
    assert hashed(array_of("STRING", ["a", None]), array_of("INT", [1, 2])) != pairs


@pytest.mark.parametrize("name", TYPES)
@given(data=st.data())
def test_it_is_a_function_of_the_values_only(name: str, data: st.DataObject) -> None:
    array = data.draw(arrays(name))
    begin = data.draw(st.integers(0, len(array)))
    whole = hashed(array)
    assert hashed(array.slice(begin)) == whole[begin:]
    assert hashed(pa.concat_arrays([array.slice(begin), array.slice(0, begin)])) == whole[begin:] + whole[:begin]
    chunked = pa.chunked_array([array.slice(0, begin), array.slice(begin)], array.type)
    assert [int(value) for value in hash_rows([chunked], len(array))] == whole
    assert [hashed(array.slice(at, 1))[0] for at in range(len(array))] == whole


@pytest.mark.parametrize(
    ("narrow", "wide", "values"),
    [
        ("TINYINT", "BIGINT", [-128, -1, 0, 1, 127, None]),
        ("INT", "BIGINT", [-(2**31), 2**31 - 1]),
        ("FLOAT", "DOUBLE", [0.0, -0.0, 0.5, float("inf"), None]),
        ("TIMESTAMP", "TIMESTAMP_NTZ", samples("TIMESTAMP")),
    ],
)
def test_widths_of_a_value_hash_alike(narrow: str, wide: str, values: list[Any]) -> None:
    assert hashed(array_of(narrow, values)) == hashed(array_of(wide, values))


def test_every_nan_and_both_zeros_hash_alike() -> None:
    odd = [struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0x7FF8000000000001, 0xFFF0000000000001)]
    assert len(set(hashed(pa.array([float("nan"), *odd], pa.float64())))) == 1
    assert hashed(pa.array([0.0])) == hashed(pa.array([-0.0]))


def test_equal_hashes_mean_equal_keys_where_that_is_promised() -> None:
    for name in ("TINYINT", "BIGINT", "DATE", "TIMESTAMP", "BOOLEAN"):
        assert is_exact([parse_type(name)])
    for types in (["STRING"], ["DOUBLE"], ["DECIMAL(10,2)"], ["INT", "INT"], []):
        assert not is_exact([parse_type(name) for name in types])
    some = np.random.default_rng(1).integers(0, 2**64, 100_000, np.uint64, endpoint=False)
    assert len(np.unique(mix(some))) == len(np.unique(some))


def test_many_values_do_not_collide() -> None:
    numbers = pa.array(np.arange(200_000))
    texts = numbers.cast(pa.string())
    longer = pa.array([f"a somewhat longer text, number {at}" for at in range(50_000)])
    for array in (numbers, texts, longer, numbers.cast(pa.decimal128(38, 0)), numbers.cast(pa.float64())):
        assert len(set(hashed(array))) == len(array)
    assert len(set(hashed(numbers[:1000], texts[1000:2000]))) == 1000


def test_hashes_are_spread_over_the_buckets() -> None:
    hashes = hash_rows([pa.array(np.arange(70_000))], 70_000)
    counts = np.bincount((hashes >> np.uint64(32)).astype(np.int64) * 7 >> 32, minlength=7)
    assert counts.min() > 9_000 and counts.max() < 11_000


def test_rows_without_columns_all_have_one_hash() -> None:
    assert hash_rows([], 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize("name", TYPES)
def test_no_rows_have_no_hashes(name: str) -> None:
    assert len(hash_rows([array_of(name, [])], 0)) == 0
    assert hashed(pa.nulls(3, parse_type(name))) == [int(NULL_HASH)] * 3


def test_a_type_without_a_hash_is_refused() -> None:
    with pytest.raises(TypeError, match="no hash is defined for"):
        hash_rows([pa.array([1], pa.decimal256(50, 0))], 1)


def test_nested_samples_differ_where_values_do() -> None:
    for name, values in NESTED.items():
        if name != "ARRAY<STRUCT<a: DOUBLE>>":
            assert len(set(hashed(array_of(name, values)))) == len(values)


def test_the_buffers_of_an_empty_list_may_be_of_any_size() -> None:
    values = pa.Array.from_buffers(pa.float64(), 0, [None, pa.py_buffer(b"x")])
    lists = pa.ListArray.from_arrays(pa.array([0, 0, 0], pa.int32()), values)
    assert hash_rows([lists], 2).tolist() == hash_rows([pa.array([[], []], pa.list_(pa.float64()))], 2).tolist()
