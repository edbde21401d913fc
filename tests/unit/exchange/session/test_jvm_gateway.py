"""What of the JVM's standard error reaches the screen."""

from __future__ import annotations

import pytest

from rejoinder.exchange.session.jvm_gateway import JvmLog

START = [
    "WARNING: Using incubator modules: jdk.incubator.vector\n",
    "Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties\n",
    "26/01/01 10:00:00 WARN Utils: Your hostname resolves to a loopback address\n",
    'Setting default log level to "WARN".\n',
    "To adjust logging level use sc.setLogLevel(newLevel).\n",
    "26/01/01 10:00:01 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform\n",
]
ERROR = "26/01/01 10:00:02 ERROR Executor: Exception in task 0.0 in stage 1.0\n"


def test_notices_of_the_start_are_left_out_and_errors_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    JvmLog(is_quiet=False).take([*START, ERROR])
    assert capsys.readouterr().err == ERROR


def test_a_quiet_log_keeps_what_it_does_not_print(capsys: pytest.CaptureFixture[str]) -> None:
    log = JvmLog(is_quiet=True)
    log.take([*START, ERROR])
    assert capsys.readouterr().err == ""
    assert list(log.lines) == [ERROR]
