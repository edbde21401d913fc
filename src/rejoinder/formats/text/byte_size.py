"""Sizes in bytes as text."""

from __future__ import annotations


def size(number: float) -> str:
    """Format a number of bytes.

    >>> size(0), size(2048), size(3_500_000)
    ('0 B', '2.0 KB', '3.3 MB')
    """
    for unit in ("B", "KB", "MB", "GB"):
        if number < 1024:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TB"
