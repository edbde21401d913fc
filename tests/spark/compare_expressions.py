"""Compare expressions with batch Spark while you write a function: those that differ are printed.

    python -m tests.spark.compare_expressions < expressions.txt
    python -m tests.spark.compare_expressions words bytes

Without topics of the corpus as arguments, expressions come from the standard input. Each line is an expression over the
table of `awkward_values.py`, and may have the words of the corpus. Answers of Spark are cached in `build/`, so only new
expressions start a JVM.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

from tests.spark.awkward_values import awkward_table
from tests.spark.conformance import Answer, differences, our_answer, spark_answers
from tests.spark.corpus import CLOSE, EQUAL, expanded

_CACHE = Path("build/spark_answers.pickle")
_PER_BATCH = 40


def main() -> None:
    """Compare the expressions of topics, or of the standard input."""
    topics = EQUAL | {"close": CLOSE}
    texts = [text for topic in sys.argv[1:] for text in topics[topic]]
    if not texts:
        texts = expanded(line.strip() for line in sys.stdin if line.strip() and not line.startswith("#"))
    table = awkward_table()
    answers = _answers(texts)
    for text in texts:
        try:
            found = differences(answers[text], our_answer(text, table), ulps=4 if text in CLOSE else 0)
        except Exception as failure:  # noqa: BLE001 - one broken template must not hide the others
            found = [f"{type(failure).__name__}: {failure}"]
        if found:
            sys.stdout.write(f"{text}\n    " + "\n    ".join(found) + "\n")


def _answers(texts: list[str]) -> dict[str, Answer]:
    known: dict[str, Answer] = pickle.loads(_CACHE.read_bytes()) if _CACHE.exists() else {}  # noqa: S301
    asked = [text for text in texts if text not in known]
    if asked:
        from rejoinder.exchange.session.spark_session import make_session
        from tests.spark.conformance import batch_session

        session = make_session(2, settings={"spark.sql.shuffle.partitions": "2"})
        batch = batch_session(session)
        _CACHE.parent.mkdir(exist_ok=True)
        for start in range(0, len(asked), _PER_BATCH):
            known |= spark_answers(batch, "awkward", asked[start : start + _PER_BATCH])
            _CACHE.write_bytes(pickle.dumps(known))
        session.stop()
    return known


if __name__ == "__main__":
    main()
