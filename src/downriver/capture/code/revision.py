"""The Git repository and commit that code was read from."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_CREDENTIALS = re.compile(r"(?<=://)[^/@]*@")
_WAIT = 10  # seconds


class SourceRevision(NamedTuple):
    """A commit of a repository. The repository is the URL of its remote, else its first commit."""

    repository: str
    commit: str


def find_revision(folder: Path) -> SourceRevision | None:
    """Return the repository and the checked-out commit of a folder; None without Git."""
    commit = _git(folder, "rev-parse", "--verify", "--quiet", "HEAD")
    if not commit:
        return None
    remote = _git(folder, "config", "--get", "remote.origin.url")
    first = "" if remote else _git(folder, "rev-list", "--max-parents=0", "HEAD")
    repository = _normalized(remote) if remote else f"git:{first.split()[-1] if first else commit}"
    return SourceRevision(repository, commit)


def _normalized(url: str) -> str:
    """Return the same text for the URLs of one repository: by HTTPS, by SSH, with a token."""
    url = _CREDENTIALS.sub("", url.strip())
    scp = re.fullmatch(r"(?:[\w.-]+@)?([\w.-]+):(?!//)(.+)", url)
    if scp is not None:
        url = f"ssh://{scp[1]}/{scp[2]}"
    scheme, separator, rest = url.partition("://")
    if separator and scheme != "file":
        url = f"https://{rest}"
    return url.rstrip("/").removesuffix(".git")


def _git(folder: Path, *arguments: str) -> str:
    place = folder if folder.is_dir() else folder.parent
    try:
        done = subprocess.run(  # noqa: S603
            ["git", *arguments],  # noqa: S607
            cwd=place,
            capture_output=True,
            check=False,
            timeout=_WAIT,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", errors="replace").strip() if done.returncode == 0 else ""
