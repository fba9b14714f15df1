"""Downloads of tests and benchmarks, shared by all checkouts of a user.

Files are under `DOWNRIVER_TEST_CACHE`, else under the user's cache directory. If several processes
need the same download, one makes it and the others wait.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
import venv
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_INSTALL_SECONDS = 1200


class PackagesUnavailableError(Exception):
    """Packages could not be installed."""


def cache_folder(kind: str) -> Path:
    """Return the folder for one kind of downloads."""
    base = os.environ.get("DOWNRIVER_TEST_CACHE")
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = (Path(base) if base else home / "downriver-tests") / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@contextmanager
def unfinished(folder: Path) -> Iterator[bool]:
    """Hold the lock of a folder, and yield whether its content is missing.

    A marker file is written last, so an interrupted download starts again.
    """
    ready = folder / ".ready"
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = not ready.exists()
        yield missing
        if missing:
            ready.touch()


def python_with(*requirements: str) -> Path:
    """Return the Python of a virtual environment with these packages."""
    digest = hashlib.sha256("\n".join([sys.version, *requirements]).encode()).hexdigest()[:12]
    name = "".join(c for c in requirements[0].partition("[")[0] if c.isalnum() or c == "-")
    folder = cache_folder("environments") / f"{name}-{digest}"
    python = folder / "bin" / "python"
    with unfinished(folder) as missing:
        if missing:
            venv.create(folder, with_pip=True, clear=True)
            _install(python, requirements)
    return python


def _install(python: Path, requirements: tuple[str, ...]) -> None:
    # Tests import few of the modules, so Python compiles only those.
    options = ["--quiet", "--disable-pip-version-check", "--no-compile"]
    pip = [str(python), "-m", "pip", "install", *options]
    done = subprocess.run(
        [*pip, *requirements],
        capture_output=True,
        text=True,
        check=False,
        timeout=_INSTALL_SECONDS,
    )
    if done.returncode != 0:
        raise PackagesUnavailableError(
            f"{', '.join(requirements)} could not be installed:\n{done.stderr[-2000:]}"
        )
