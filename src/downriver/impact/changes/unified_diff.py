"""Applies a unified diff to source files: the text of each file before and after it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import InvalidRequestError
from downriver.impact.changes.commits import FilePair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.impact.fix.source_files import SourceFiles

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_FILE = "/dev/null"
_NO_NEWLINE = "\\"  # `\ No newline at end of file`


class _Hunk(NamedTuple):
    """The lines of one hunk. `start` is its first line in the text before, counted from zero."""

    start: int
    before: list[str]
    after: list[str]


class _FileDiff(NamedTuple):
    """The hunks of one file; None where the file does not exist before or after."""

    before: str | None
    after: str | None
    hunks: list[_Hunk]


def apply_diff(diff: str, code: SourceFiles) -> list[FilePair]:
    """Return every file of a unified diff before and after it.

    A diff that does not apply is an error.
    """
    files = _parse(diff.splitlines())
    if not files:
        raise InvalidRequestError("diff", "contains no file; expected the output of `git diff`")
    return [pair for file in files for pair in _pairs(file, code)]


def _pairs(file: _FileDiff, code: SourceFiles) -> list[FilePair]:
    text = None if file.before is None else code.read(file.before)
    if file.before is not None and text is None:
        raise InvalidRequestError("diff", f"{file.before} is not in the server's repository")
    head = None if file.after is None else _apply(file, text or "")
    if file.before is None or file.after is None or file.before == file.after:
        return [FilePair(file.after or file.before or "", text, head)]
    return [FilePair(file.before, text, None), FilePair(file.after, None, head)]


def _apply(file: _FileDiff, text: str) -> str:
    lines = text.splitlines()
    parts: list[str] = []
    at = 0
    for hunk in file.hunks:
        start = _place(lines, hunk, at)
        if start is None:
            place = f"{file.before or file.after}:{hunk.start + 1}"
            raise InvalidRequestError(
                "diff", f"does not match the text of the server's repository at {place}"
            )
        parts += lines[at:start]
        parts += hunk.after
        at = start + len(hunk.before)
    return "".join(f"{line}\n" for line in (*parts, *lines[at:]))


def _place(lines: Sequence[str], hunk: _Hunk, least: int) -> int | None:
    """Return where a hunk applies: at its line, or the nearest place after the last hunk."""
    size = len(hunk.before)
    places = range(least, len(lines) - size + 1)
    for start in sorted(places, key=lambda place: abs(place - hunk.start)):
        if lines[start : start + size] == hunk.before:
            return start
    return None


def _parse(lines: Sequence[str]) -> list[_FileDiff]:
    files: list[_FileDiff] = []
    at = 0
    while at < len(lines):
        if lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1][:4] == "+++ ":
            files.append(_FileDiff(_path(lines[at]), _path(lines[at + 1]), []))
            at += 2
        elif (match := _HUNK.match(lines[at])) and files:
            hunk, at = _read_hunk(lines, at + 1, match)
            files[-1].hunks.append(hunk)
        else:
            at += 1
    return files


def _read_hunk(lines: Sequence[str], at: int, match: re.Match[str]) -> tuple[_Hunk, int]:
    first, size, _, new_size = match.groups()
    old, new = (1 if number is None else int(number) for number in (size, new_size))
    # A hunk that only adds lines is placed after the line that it names.
    hunk = _Hunk(max(int(first) - (1 if old else 0), 0), [], [])
    while at < len(lines) and (len(hunk.before) < old or len(hunk.after) < new):
        mark, text = lines[at][:1], lines[at][1:]
        if mark not in ("-", "+", " ", "", _NO_NEWLINE):
            break
        if mark in ("-", " ", ""):
            hunk.before.append(text)
        if mark in ("+", " ", ""):
            hunk.after.append(text)
        at += 1
    if len(hunk.before) != old or len(hunk.after) != new:
        raise InvalidRequestError("diff", f"line {at + 1}: the hunk has fewer lines than it states")
    return hunk, at


def _path(line: str) -> str | None:
    name = line[4:].split("\t")[0].strip()
    if name == _NO_FILE:
        return None
    return re.sub(r"^[abciw]/", "", name)
