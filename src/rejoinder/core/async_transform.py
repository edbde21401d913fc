"""AsyncTransform: call a Python function for each row, for example a lookup in a service.

At most `concurrency` calls are open: `rows` blocks until one ends before it starts the next. Answers are emitted in the
order of their rows, or unordered as they arrive. A watermark is emitted right after the rows that arrived before it.
A call per row is a loop over rows by nature; everything else works on batches.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any

import pyarrow as pa

from rejoinder.core.async_queue import AnswerQueue, Call, Mark
from rejoinder.core.messages import Message, Rows
from rejoinder.core.operator import Operator
from rejoinder.errors import FunctionFailed, Unsupported
from rejoinder.runtime.function_calls import FunctionCalls, TooSlowError
from rejoinder.watermarks.coalescer import Idle, Watermark

Row = Mapping[str, Any]
Answer = Row | Sequence[Row] | None
"""One row, several or none (an empty list or None)."""


class AsyncTransform(Operator):
    """Call `function` for each row; the rows that it returns have the columns of `schema`.

    A call is cancelled after `timeout` seconds. A failed call is retried `retries` times.

    Every method returns the messages that can be emitted by then. `ready` does nothing else, `wait` blocks until one
    call ends, `drain` until all do. Use it as a context manager, or `close` it.

    >>> async def doubled(row): return {"twice": 2 * row["n"]}
    >>> with AsyncTransform(doubled, pa.schema([("twice", pa.int64())])) as transform:
    ...     out = transform.rows(0, pa.table({"n": [1, 2]})) + transform.watermark(0, key=0, time=5) + transform.drain()
    >>> [row for message in out[:-1] for row in message.table.to_pylist()], out[-1]
    ([{'twice': 2}, {'twice': 4}], Watermark(key=0, time=5))
    """

    parts = ("watermarks", "leaving", "pending")

    def __init__(
        self,
        function: Callable[[Row], Answer] | Callable[[Row], Awaitable[Answer]],
        schema: pa.Schema,
        *,
        inputs: int | Sequence[int] = 1,
        ordered: bool = True,
        concurrency: int = 64,
        timeout: float | None = None,
        retries: int = 0,
    ) -> None:
        super().__init__(inputs)
        if concurrency < 1:
            fact = "an asynchronous transform needs a concurrency of at least 1"
            raise Unsupported(fact, detail=f"it is {concurrency}", hint="set how many calls may be open at once")
        self.schema = schema
        self._ordered = ordered
        self._calls: FunctionCalls[Row, Answer, Call[Row, Sequence[Row]]] = FunctionCalls(
            function, concurrency=concurrency, timeout=timeout, retries=retries
        )
        self._queue = self._empty()
        self._leaving: list[Sequence[Row] | Mark] = []

    def _empty(self) -> AnswerQueue[Row, Sequence[Row]]:
        return AnswerQueue(ordered=self._ordered)

    def on_rows(self, ordinal: int, table: pa.Table) -> list[Message]:
        """Start a call for each row; return what can be emitted. Blocks while `concurrency` calls are open."""
        self._start(table.to_pylist())
        return self.ready()

    def on_watermark(self, watermark: Watermark) -> list[Message]:
        """Queue a watermark after the rows that arrived before it."""
        return self._mark(watermark)

    def on_idle(self) -> list[Message]:
        """Queue the idle message after the rows that arrived before it."""
        return self._mark(Idle())

    def ready(self) -> list[Message]:
        """Return what can be emitted now. Does not block."""
        while (ended := self._calls.fetch(wait=False)) is not None:
            self._take(*ended)
        return self._out()

    def wait(self, timeout: float | None = None) -> list[Message]:
        """Block until a call ends, if any is open; return what can be emitted then."""
        ended = self._calls.fetch(wait=True, timeout=timeout)
        if ended is not None:
            self._take(*ended)
        return self.ready()

    def drain(self) -> list[Message]:
        """Block until all calls have ended; return everything."""
        while (ended := self._calls.fetch(wait=True)) is not None:
            self._take(*ended)
        return self._out()

    def pending(self) -> list[Call[Row, Sequence[Row]] | Mark]:
        """Return what is pending, oldest first: calls, ended or not, and watermarks."""
        return self._queue.entries()

    def snapshot(self) -> dict[str, Any]:
        """Return the state: pending rows, the watermarks between them, and what is emitted next."""
        leaving = [_saved(item) if isinstance(item, Watermark | Idle) else {"rows": item} for item in self._leaving]
        pending = [_saved(entry) for entry in self._queue.entries()]
        return super().snapshot() | {"leaving": leaving, "pending": pending}

    def restore(self, *snapshots: Mapping[str, Any]) -> None:
        """Continue from snapshots: calls whose answers were not emitted are made again.

        One snapshot is restored in its order. Several have no common order: rows come first, then the smallest pending
        watermark of each key.
        """
        super().restore(*snapshots)
        self._calls.close()
        self._queue, self._leaving = self._empty(), []
        entries = [entry for snapshot in snapshots for entry in (*snapshot["leaving"], *snapshot["pending"])]
        if len(snapshots) == 1:
            for entry in entries:
                if "row" in entry:
                    self._start([entry["row"]])
                else:
                    self._leaving += [entry["rows"]] if "rows" in entry else self._queue.mark(_loaded(entry))
            return
        self._leaving += [entry["rows"] for entry in entries if "rows" in entry]
        self._start(entry["row"] for entry in entries if "row" in entry)
        for key in sorted({entry["watermark"][0] for entry in entries if "watermark" in entry}):
            value = self._watermarks.whole.value(key)
            self._leaving += [] if value is None else self._queue.mark(Watermark(key, value))

    def close(self) -> None:
        """Cancel open calls and end their thread."""
        self._calls.close()

    def __enter__(self) -> AsyncTransform:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self, rows: Iterable[Row]) -> None:
        for row in rows:
            while not self._calls.has_room:
                ended = self._calls.fetch(wait=True)
                if ended is not None:
                    self._take(*ended)
            self._calls.start(row, self._queue.add(row))

    def _mark(self, mark: Mark) -> list[Message]:
        # Answers that have already arrived go before the watermark, so that it is not queued after them.
        before = self.ready()
        self._leaving += self._queue.mark(mark)
        return before + self._out()

    def _take(self, call: Call[Row, Sequence[Row]], ended: Future[Answer]) -> None:
        failure = ended.exception()
        if failure is not None:
            raise FunctionFailed(
                "the asynchronous transform failed on a row",
                detail=str(failure) if isinstance(failure, TooSlowError) else f"it raised {type(failure).__name__}",
                values=f"row {dict(call.row)}: {failure}",
                hint="catch the error in the function, and return None to drop the row",
            ) from failure
        self._leaving += self._queue.answer(call, self._checked(call.row, ended.result()))

    def _checked(self, row: Row, answer: Answer) -> Sequence[Row]:
        rows: Sequence[Row] = [] if answer is None else [answer] if isinstance(answer, Mapping) else answer
        for result in rows:
            unknown = [name for name in result if name not in self.schema.names]
            if unknown:
                raise FunctionFailed(
                    f"the asynchronous transform returned a column `{unknown[0]}` that its schema lacks",
                    detail=f"the schema has {', '.join(self.schema.names) or 'no columns'}",
                    values=f"row {dict(row)}",
                    hint="add it to the schema of the transform, or remove it from the answer",
                )
        return rows

    def _out(self) -> list[Message]:
        """Return what is emitted as messages; consecutive rows become one batch."""
        leaving, self._leaving = self._leaving, []
        result: list[Message] = []
        rows: list[Row] = []
        for item in leaving:
            if isinstance(item, Watermark | Idle):
                result += self._batch(rows)
                result.append(item)
                rows = []
            else:
                rows += item
        return result + self._batch(rows)

    def _batch(self, rows: list[Row]) -> list[Message]:
        if not rows:
            return []
        try:
            return [Rows(pa.Table.from_pylist([dict(row) for row in rows], schema=self.schema))]
        except (pa.ArrowInvalid, pa.ArrowTypeError) as failure:
            raise FunctionFailed(
                "an answer of the asynchronous transform does not fit its schema",
                detail=f"columns: {', '.join(f'{field.name} {field.type}' for field in self.schema)}",
                values=str(failure).splitlines()[0],
                hint="return values of the types in the schema of the transform",
            ) from None


def _saved(entry: Call[Row, Sequence[Row]] | Mark) -> dict[str, Any]:
    if isinstance(entry, Call):
        return {"row": dict(entry.row)}
    return {"watermark": [entry.key, entry.time]} if isinstance(entry, Watermark) else {"idle": True}


def _loaded(entry: Mapping[str, Any]) -> Mark:
    return Watermark(*entry["watermark"]) if "watermark" in entry else Idle()
