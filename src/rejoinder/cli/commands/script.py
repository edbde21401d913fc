"""A file of statements, read and split into definitions and questions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from rejoinder.cli.terminal.error_places import placed
from rejoinder.engine.definitions.definition_batch import Batch
from rejoinder.engine.definitions.definition_statements import Definition
from rejoinder.errors import InvalidSql, MissingInput, Unsupported
from rejoinder.ir.catalog import Catalog
from rejoinder.sql.parse.error_positions import Span, spans_of
from rejoinder.sql.statements.row_questions import Subscribe
from rejoinder.sql.statements.statement_parser import Question, parse_statements


@dataclass(frozen=True)
class Script:
    """A file of statements, split into definitions and questions."""

    definitions: list[Definition]
    questions: list[Question]
    path: str = ""
    text: str = ""
    spans: list[Span] = field(default_factory=list)
    """Where each definition is in the text."""

    def applied(self, catalog: Catalog, fed: Collection[str]) -> Batch:
        """Apply the definitions to a catalog. Raises a `PlanningError` with its place in the file.

        `fed`: the sources with committed rows. A definition that reads none of them may be changed.
        """
        batch = Batch(catalog, frozenset(fed), is_rerun=True)
        for statement, span in zip(self.definitions, self.spans, strict=True):
            with placed(self.text, self.path, span):
                batch.add(statement)
        with placed(self.text, self.path):
            batch.finish()
        return batch


def read_script(path: Path) -> Script:
    """Read and parse a file. Raises a `RejoinderError` that names it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as failure:
        near = sorted(str(other) for other in path.parent.glob("*.sql") if other != path)[:5]
        reason = failure.strerror if isinstance(failure, OSError) else "it is not UTF-8 text"
        hint = f"there is {', '.join(near)}" if near else "give a file of SQL statements"
        if isinstance(failure, UnicodeDecodeError):
            hint = "save it as UTF-8, or give a file of SQL statements"
        raise MissingInput(f"cannot read `{path}`: {reason}", hint=hint) from failure
    definitions: list[Definition] = []
    questions: list[Question] = []
    spans: list[Span] = []
    with placed(text, str(path)):
        statements = parse_statements(text)
    for statement, span in zip(statements, spans_of(text), strict=True):
        if isinstance(statement, Subscribe):
            raise Unsupported(
                "SUBSCRIBE is not supported in a file",
                detail=f"SUBSCRIBE {statement.view}",
                hint=f"run the file with --follow --watch {statement.view}, or `rejoinder watch` its state",
            )
        if isinstance(statement, Question):
            questions.append(statement)
        else:
            definitions.append(statement)
            spans.append(span)
    if not definitions and not questions:
        raise InvalidSql(f"`{path}` has no statements", hint="CREATE sources and views in it")
    return Script(definitions, questions, str(path), text, spans)
