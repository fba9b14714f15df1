"""Files of two commits of a Git repository, or of a commit and the working tree."""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

READ = (".sql", ".py", ".ipynb", ".yml", ".yaml")  # the files whose meaning can be compared
SEEDS = ("seeds/*.csv", "*/seeds/*.csv")


class Trees(NamedTuple):
    """The folders in which the code of two commits lies."""

    base: Path
    head: Path


class FilePair(NamedTuple):
    """One file before and after; None where there is none."""

    path: str
    base: str | None
    head: str | None


def list_changed_files(folder: Path, base: str, head: str | None) -> list[FilePair]:
    """Return the files that differ between two commits; without `head`, the working tree's."""
    root = _git(folder, "rev-parse", "--show-toplevel").strip()
    commits = [_commit(folder, base), *([_commit(folder, head)] if head else [])]
    listed = _git(
        folder, "-C", root, "diff", "--name-only", "--no-renames", "-z", *commits, "--", *_PATTERNS
    )
    paths = [path for path in listed.split("\0") if path]
    if head is None:
        untracked = _git(
            folder, "-C", root, "ls-files", "--others", "--exclude-standard", "-z", "--", *_PATTERNS
        )
        paths += [path for path in untracked.split("\0") if path]
    before = _contents(folder, commits[0], paths)
    after = (
        _contents(folder, commits[1], paths)
        if head
        else {path: _working(folder, root, path) for path in paths}
    )
    return [FilePair(path, before.get(path), after.get(path)) for path in sorted(set(paths))]


_PATTERNS = (*(f"*{ending}" for ending in READ), *SEEDS)


@contextmanager
def open_trees(folder: Path, base: str, head: str | None) -> Iterator[Trees]:
    """Lay out the code of two commits side by side; without `head`, the second is as it stands."""
    root = folder.joinpath(_git(folder, "rev-parse", "--show-toplevel").strip())
    with tempfile.TemporaryDirectory(prefix="downriver-") as place:
        before = _lay_out(folder, root, _commit(folder, base), Path(place) / "base")
        after = (
            root
            if head is None
            else _lay_out(folder, root, _commit(folder, head), Path(place) / "head")
        )
        yield Trees(before, after)


def _lay_out(folder: Path, root: Path, commit: str, into: Path) -> Path:
    """Write the code of a commit into a folder of its own."""
    into.mkdir()
    listed = _run(folder, ["-C", str(root), "ls-tree", "-r", "-z", "--name-only", commit], b"")
    paths = listed.decode("utf-8", errors="replace").split("\0")
    code = [path for path in paths if path.lower().endswith(READ) or path == ".gitignore"]
    for path, text in _contents(folder, commit, code).items():
        file = into / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    return into


def _commit(folder: Path, name: str) -> str:
    if name.startswith("-"):
        raise InvalidRequestError("--base", f"{name!r} is no commit")
    try:
        return _git(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()
    except InvalidRequestError as exc:
        raise InvalidRequestError("--base", f"{name!r} is no commit of this repository") from exc


def _working(folder: Path, root: str, path: str) -> str | None:
    try:
        return (folder.joinpath(root) / path).read_text("utf-8", errors="replace")
    except OSError:
        return None


def _contents(folder: Path, commit: str, paths: Sequence[str]) -> dict[str, str]:
    """Return files of one commit: all of them by one process."""
    asked = "".join(f"{commit}:{path}\n" for path in paths)
    answer = _run(folder, ["cat-file", "--batch"], asked.encode())
    found: dict[str, str] = {}
    at = 0
    for path in paths:
        end = answer.index(b"\n", at)
        header = answer[at:end].split()
        at = end + 1
        if len(header) == 3 and header[1] == b"blob":
            size = int(header[2])
            found[path] = answer[at : at + size].decode("utf-8", errors="replace")
            at += size + 1
    return found


def _git(folder: Path, *arguments: str) -> str:
    return _run(folder, list(arguments), b"").decode("utf-8", errors="replace")


def _run(folder: Path, arguments: list[str], given: bytes) -> bytes:
    try:
        done = subprocess.run(  # noqa: S603
            ["git", *arguments],  # noqa: S607
            cwd=folder,
            input=given,
            capture_output=True,
            check=True,
        )
    except FileNotFoundError as exc:
        raise InvalidRequestError("--base", "needs git, which is not installed") from exc
    except subprocess.CalledProcessError as exc:
        said = exc.stderr.decode("utf-8", errors="replace").strip() or "git failed"
        raise InvalidRequestError("--base", said) from exc
    return done.stdout
