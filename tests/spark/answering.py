"""A function for enrichments in workers: what it says depends on when it is asked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any


async def asked_at(row: Mapping[str, Any]) -> dict[str, Any]:
    """The time of the call, and the name in capitals."""
    await asyncio.sleep(0.01)
    if row["name"] == "nobody":
        raise LookupError("there is nobody of that name")
    return {"at": time.time_ns(), "loud": row["name"].upper()}
