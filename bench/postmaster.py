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
        # What it was started with, as it noted itself.
        self._command = shlex.split((self._data / "postmaster.opts").read_text())
        self._restarted: subprocess.Popen[bytes] | None = None

    def kill(self) -> None:
        """End the server and all its children at once, leaving recovery to the next start."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            children = [row[0] for row in connection.execute("SELECT pid FROM pg_stat_activity")]
        self._end(signal.SIGKILL, children)

    def stop(self) -> None:
        """End the server in order."""
        self._end(signal.SIGINT, [])

    def start(self) -> None:
        """Start it again and wait until it takes connections."""
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
            # It ends when a child of the killed one still holds the shared memory: then again.
            while self._restarted.poll() is None and time.monotonic() < deadline:
                try:
                    psycopg.connect(self.url, connect_timeout=5).close()
                except psycopg.OperationalError:
                    time.sleep(0.02)
                else:
                    return
        raise RuntimeError("PostgreSQL did not start again")

    def close(self) -> None:
        """End the server if it was started again here; who started it first ends it otherwise."""
        if self._restarted is not None and self._restarted.poll() is None:
            self._restarted.send_signal(signal.SIGINT)
            self._restarted.wait()

    def _end(self, how: signal.Signals, children: list[int]) -> None:
        server = int((self._data / "postmaster.pid").read_text().split()[0])
        os.kill(server, how)
        for child in children:
            with suppress(ProcessLookupError):  # gone by itself
                os.kill(child, how)
        if self._restarted is None:
            os.waitpid(server, 0)  # else it would look alive to the next one
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
