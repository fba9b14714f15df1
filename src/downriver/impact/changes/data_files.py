"""Edited files of data that code of the repository reads, other than dbt seeds."""

from __future__ import annotations

import subprocess
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from downriver.model.unread import Unread, UnreadReason

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_DATA = (
    ".csv", ".tsv", ".jsonl", ".ndjson", ".parquet", ".avro", ".orc", ".arrow", ".feather", ".xlsx",
    ".csv.gz", ".tsv.gz", ".json.gz", ".jsonl.gz", ".ndjson.gz",
)  # fmt: skip
_CODE = ("*.sql", "*.py", "*.ipynb", "*.yml", "*.yaml", "*.sh", "*.toml")
_VARIABLE = ("*", "{", "$", "%")  # after a folder: a pattern or a placeholder
_MOST_NAMES = 500


def find_data_files(root: Path, commit: str, paths: Iterable[str]) -> set[str]:
    """Return the data files that the code of a commit names, itself or with its folder.

    All of them when Git cannot search the commit: a clone may lack some of its files.
    """
    patterns = {path: _patterns(path) for path in paths if path.lower().endswith(_DATA)}
    names = sorted({name for listed in patterns.values() for name in listed})
    if not names:
        return set()
    if len(names) > _MOST_NAMES:
        return set(patterns)
    given = [part for name in names for part in ("-e", name)]
    command = ["git", "grep", "--no-color", "-hoF", *given, commit, "--", *_CODE]
    done = subprocess.run(command, cwd=root, capture_output=True, check=False)  # noqa: S603
    if done.returncode > 1:
        return set(patterns)
    named = set(done.stdout.decode("utf-8", errors="replace").splitlines())
    return {path for path, listed in patterns.items() if not named.isdisjoint(listed)}


def _patterns(path: str) -> list[str]:
    """Return how code names a file: by its name, or with a pattern or variable in its folder."""
    file = PurePosixPath(path)
    folder = file.parent.name
    return [file.name, *(f"{folder}/{sign}" for sign in _VARIABLE if folder)]


def unread_data(path: str) -> Unread:
    """Return the blind spot of a data file: its content is not compared."""
    detail = "data that code of this repository reads; its columns and values are not compared"
    return Unread(path=path, line=0, reason=UnreadReason.DYNAMIC_CODE, detail=detail)
