"""The name of an output column that has no alias."""

from __future__ import annotations

from sqlglot import exp

from rejoinder import errors
from rejoinder.sql.terms import spark_text


def output_name(node: exp.Expr) -> str:
    """Give the alias, or the name that Spark would generate. Raises `Unsupported` where that name is not known."""
    if isinstance(node, exp.Alias | exp.Column | exp.Dot):
        return node.output_name
    raise errors.Unsupported(
        f"`{spark_text(node)}` needs a name",
        detail="the name that Spark would generate for it is not offered",
        hint=f"write `{spark_text(node)} AS name`",
    )
