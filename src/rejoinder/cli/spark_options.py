"""Options of the command line about Spark and the engine: parallelism, memory, history, settings by name."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import typer

MEMORY = "spark.driver.memory"
DEFAULT_MEMORY = "2g"
LEAST_MEMORY_MB = 512
_SIZE = re.compile(r"(\d+)([mgt])b?", re.IGNORECASE)
_MEGABYTES = {"m": 1, "g": 1024, "t": 1024 * 1024}


@dataclass(frozen=True)
class Settings:
    """How a flow is run. `parallelism` and `history` are None where the defaults apply."""

    parallelism: int | None = None
    history: int | None = None
    memory: str = DEFAULT_MEMORY
    conf: dict[str, str] = field(default_factory=dict)

    @property
    def cores(self) -> int:
        """The number of concurrent tasks of a local session."""
        return self.parallelism or min(os.cpu_count() or 1, 32)


def memory_size(text: str | None) -> str | None:
    """Check and normalize a size of memory. Raises `typer.BadParameter`.

    >>> memory_size("4G"), memory_size("800mb")
    ('4g', '800m')
    """
    if text is None:
        return None
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"`{text}` is not a size of memory; write it like 800m or 4g")
    number, unit = int(match[1]), match[2].lower()
    if number * _MEGABYTES[unit] < LEAST_MEMORY_MB:
        raise typer.BadParameter(f"Spark needs at least {LEAST_MEMORY_MB}m")
    return f"{number}{unit}"


def spark_settings(items: Sequence[str]) -> dict[str, str]:
    """Parse Spark settings, each written as `spark.name=value`. Raises `typer.BadParameter`.

    >>> spark_settings(["spark.ui.enabled=true", "spark.x=a=b"])
    {'spark.ui.enabled': 'true', 'spark.x': 'a=b'}
    """
    result: dict[str, str] = {}
    for item in items:
        name, equals, value = item.partition("=")
        name = name.strip()
        if not equals or not name:
            raise typer.BadParameter(f"`{name or item}` has no value; write it like spark.ui.enabled=true")
        if not name.startswith("spark."):
            raise typer.BadParameter(f"`{name}` is not a setting of Spark; its name starts with `spark.`")
        if name in result:
            raise typer.BadParameter(f"`{name}` is set twice")
        result[name] = value
    return result


def settings_of(
    parallelism: int | None, history: int | None, memory: str | None, conf: Sequence[str] | None
) -> Settings:
    """Combine the options. Raises `typer.BadParameter` if two of them contradict each other."""
    spark = spark_settings(conf or ())
    if memory is not None and spark.get(MEMORY, memory) != memory:
        raise typer.BadParameter(f"--memory {memory} and --conf {MEMORY}={spark[MEMORY]} contradict each other")
    return Settings(parallelism, history, memory or DEFAULT_MEMORY, spark)
