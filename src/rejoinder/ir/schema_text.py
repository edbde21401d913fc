"""Schemas as text, for manifests."""

from __future__ import annotations

import pyarrow as pa


def schema_to_json(schema: pa.Schema) -> str:
    """Write a schema as text: Arrow's own serialised form, which keeps every type exactly."""
    encoded: str = schema.serialize().to_pybytes().hex()
    return encoded


def schema_from_json(text: str) -> pa.Schema:
    """Read what `schema_to_json` wrote."""
    return pa.ipc.read_schema(pa.BufferReader(bytes.fromhex(text)))
