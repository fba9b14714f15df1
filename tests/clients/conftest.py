"""Real clients of other projects, each in a virtual environment of its own, and a server for them.

Environments are made once and kept under `DOWNRIVER_TEST_CACHE`, else under the user's cache
directory. Without the packages the tests are skipped; in CI they fail.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import venv
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import pytest
from tests.server import running_server

if TYPE_CHECKING:
    from collections.abc import Iterator

ClientPython: TypeAlias = Callable[..., Path]

_INSTALL_SECONDS = 1200


@pytest.fixture(scope="session")
def client_python() -> ClientPython:
    """A function that returns the Python of an environment with these packages."""
    return _python_with


@pytest.fixture(scope="module")
def server_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of an empty store, in a process of its own, for the tests of one file."""
    with running_server(tmp_path_factory.mktemp("clients") / "lineage.db") as url:
        yield url


def _python_with(*requirements: str) -> Path:
    digest = hashlib.sha256("\n".join([sys.version, *requirements]).encode()).hexdigest()[:12]
    name = "".join(c for c in requirements[0].partition("[")[0] if c.isalnum() or c == "-")
    folder = _cache() / f"{name}-{digest}"
    python = folder / "bin" / "python"
    ready = folder / ".ready"  # written last: an interrupted set-up starts over
    with _locked(folder.with_suffix(".lock")):
        if not ready.exists():
            venv.create(folder, with_pip=True, clear=True)
            _install(python, requirements)
            ready.touch()
    return python


def _cache() -> Path:
    base = os.environ.get("DOWNRIVER_TEST_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = (Path(base) if base else home / "downriver-tests") / "clients"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let one process at a time make an environment: several run the tests."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _install(python: Path, requirements: tuple[str, ...]) -> None:
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    done = subprocess.run(
        [*pip, *requirements],
        capture_output=True,
        text=True,
        check=False,
        timeout=_INSTALL_SECONDS,
    )
    if done.returncode != 0:
        reason = f"{', '.join(requirements)} could not be installed:\n{done.stderr[-2000:]}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
