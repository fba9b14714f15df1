"""A PostgreSQL server that can be killed, and started again on the same data and port."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from tests.postgres import running_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

_START_SECONDS = 60


class Postmaster:
    """The server behind a URL: one that this process started."""

    def __init__(self, url: str) -> None:
        self.url = url
        with psycopg.connect(url, autocommit=True) as connection:
            row = connection.execute("SHOW data_directory").fetchone()
        assert row is not None
        self._data = Path(row[0])
        # The command with which it was started, as recorded by PostgreSQL.
        self._command = shlex.split((self._data / "postmaster.opts").read_text())
        self._restarted: subprocess.Popen[bytes] | None = None

    def kill(self) -> None:
        """Kill the server and all its children; the next start recovers the data."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            children = [row[0] for row in connection.execute("SELECT pid FROM pg_stat_activity")]
        self._end(signal.SIGKILL, children)

    def stop(self) -> None:
        """Stop the server with a fast shutdown."""
        self._end(signal.SIGINT, [])

    def start(self) -> None:
        """Start the server again and wait until it accepts connections."""
        deadline = time.monotonic() + _START_SECONDS
        owner = self._data.stat()
        while time.monotonic() < deadline:
            self._restarted = subprocess.Popen(
                self._command,
                cwd=self._data,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                user=owner.st_uid,
                group=owner.st_gid,
            )
            # The start fails while a child of the killed server holds the shared memory: retry.
            while self._restarted.poll() is None and time.monotonic() < deadline:
                try:
                    psycopg.connect(self.url, connect_timeout=5).close()
                except psycopg.OperationalError:
                    time.sleep(0.02)
                else:
                    return
        raise RuntimeError("PostgreSQL did not start again")

    def close(self) -> None:
        """Stop the server if this object has restarted it; else the first starter stops it."""
        if self._restarted is not None and self._restarted.poll() is None:
            self._restarted.send_signal(signal.SIGINT)
            self._restarted.wait()

    def _end(self, how: signal.Signals, children: list[int]) -> None:
        server = int((self._data / "postmaster.pid").read_text().split()[0])
        os.kill(server, how)
        for child in children:
            with suppress(ProcessLookupError):  # it has ended already
                os.kill(child, how)
        if self._restarted is None:
            os.waitpid(server, 0)  # else the next start would find a zombie process
        else:
            self._restarted.wait()
            self._restarted = None


@contextmanager
def running_postmaster(
    *, fsync: bool = True, settings: dict[str, str] | None = None
) -> Iterator[Postmaster]:
    """Run a server that can be killed, with settings that need a restart."""
    with running_postgres(fsync=fsync) as url:
        postmaster = Postmaster(url)
        try:
            if settings:
                with psycopg.connect(url, autocommit=True) as connection:
                    for name, value in settings.items():
                        statement = f"ALTER SYSTEM SET {name} = '{value}'"
                        connection.execute(statement)
                postmaster.stop()
                postmaster.start()
            yield postmaster
        finally:
            postmaster.close()
