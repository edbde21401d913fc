"""Kafka Streams: fills the topics of the harness's broker, then becomes the JVM of `KafkaStreamsEngine.java`.

The topics are filled by a JVM of its own, which ends before the clock starts, so that the engine's memory is not that
of loading. Java talks to the harness itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.engines import jvm
from benchmarks.engines.protocol import Task
from benchmarks.generate import FAR_MS
from benchmarks.truth import truths
from tests.spark.broker import fetch_jars

MODULE = "kafka-streams"
ENGINE, TOPICS = (Path(__file__).with_name(f"{name}.java") for name in ("KafkaStreamsEngine", "KafkaTopics"))


def main() -> None:
    task = Task.from_argument(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        classpath = jvm.compiled(fetch_jars(Path(folder), MODULE), ENGINE, TOPICS)
    start = jvm.command(classpath, task.cores)
    inputs = {"data": task.data} | ({"warm": task.warm} if task.warm else {})
    named = [word for name, data in inputs.items() for word in (name, str(jvm.whole_files(data)))]
    subprocess.run([*start, TOPICS.stem, task.broker, str(task.cores), *named], check=True)
    few = truths(Path(task.warm))[task.workload].rows_out if task.warm else -1
    numbers = (task.cores, FAR_MS, task.rows_out, few)
    command = [*start, ENGINE.stem, task.workload, task.broker, task.state, *map(str, numbers)]
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()
