"""Real servers for the belief stores: each test session starts its own from the machine's packages."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from needs import need
from ports import free_port
from unpoison.beliefs import BeliefStore, open_beliefs

KINDS = ("memory", "sqlite", "redis", "postgres")
PATIENCE = 60.0


def wait_until(ready: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + PATIENCE
    while not ready():
        if process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"the server did not start:\n{log.read_text()[-2000:]}")
        time.sleep(0.05)


class Server:
    """A server in a folder of its own on a free port, that can be stopped and started again.

    Attributes:
        url: Where it is.
    """

    url: str

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.log = folder / "log"
        self.process: subprocess.Popen[bytes] | None = None
        self.user: dict[str, Any] = {}

    def start(self) -> None:
        raise NotImplementedError

    def launched(self, command: list[str], ready: Callable[[], bool]) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **self.user)
        wait_until(ready, self.process, self.log)

    def listening(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(60)
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)  # "fast" for PostgreSQL: without waiting for clients
            self.process.wait(PATIENCE)
            self.process = None


class RedisServer(Server):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        command = ["redis-server", "--bind", "127.0.0.1", "--port", str(self.port), "--save", "", "--appendonly", "no"]
        self.launched(command, self.listening)


class PostgresServer(Server):
    """Refuses to run as root, so as root it runs as the user `postgres` that Debian's package makes, or as nobody."""

    def __init__(self, folder: Path, binaries: Path) -> None:
        super().__init__(folder)
        self.binaries = binaries
        self.url = f"postgresql://unpoison@127.0.0.1:{self.port}/postgres"
        self.data = folder / "data"
        if os.getuid() == 0:
            users = {opened.pw_name: opened for opened in pwd.getpwall()}
            user = users.get("postgres", users["nobody"])
            self.user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            shutil.chown(folder, user.pw_uid)
        made = [str(binaries / "initdb"), "-D", str(self.data), "-A", "trust", "-U", "unpoison", "-E", "UTF8"]
        subprocess.run([*made, "--no-sync"], check=True, capture_output=True, cwd=folder, **self.user)

    def start(self) -> None:
        settings = {"fsync": "off", "max_connections": "64", "listen_addresses": "127.0.0.1", "port": str(self.port)}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(self.binaries / "postgres"), "-D", str(self.data), "-k", str(self.folder), *options]
        self.launched(command, self.ready)

    def ready(self) -> bool:
        probe = [str(self.binaries / "pg_isready"), "-h", "127.0.0.1", "-p", str(self.port), "-U", "unpoison"]
        return subprocess.run(probe, capture_output=True).returncode == 0


def postgres_binaries() -> Path | None:
    """Debian keeps `initdb` out of the path, in a folder by version."""
    opened = [Path(path).resolve().parent for path in (shutil.which("initdb"),) if path]
    return next(iter([*opened, *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]), None)


def started(kind: str) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix=f"unpoison-{kind}-") as name:
        folder = Path(name)
        if kind == "redis":
            need("redis")
            if shutil.which("redis-server") is None:
                pytest.skip("REDIS ABSENT: install redis-server to run the tests of the Redis store")
            server: Server = RedisServer(folder)
        else:
            need("psycopg")
            binaries = postgres_binaries()
            if binaries is None:
                pytest.skip("POSTGRESQL ABSENT: install postgresql to run the tests of the PostgreSQL store")
            folder.chmod(0o755)
            server = PostgresServer(folder, binaries)
        try:
            server.start()
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Any]:
    yield from started("redis")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Any]:
    yield from started("postgres")


@pytest.fixture
def spec(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], str]:
    """The string that opens a store of a kind; a file is new for each test, servers are shared."""

    def spec(kind: str) -> str:
        if kind == "memory":
            return "memory"
        if kind == "sqlite":
            return f"sqlite:{tmp_path / 'beliefs.db'}"
        return str(request.getfixturevalue(f"{kind}_server").url)

    return spec


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, spec: Callable[[str], str]) -> Iterator[BeliefStore]:
    opened: Any = open_beliefs(spec(request.param))
    if request.param == "redis":
        opened._client.flushdb()
    elif request.param == "postgres":
        opened._connection.execute("DELETE FROM unpoison_beliefs")
    yield opened
    opened.close()
