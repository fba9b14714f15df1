"""Edits of Python code that a job's unknown parts depend on.

The scanner cannot read a query or path that is only known at run time. So it cannot compare an edit
of the code that computes that value. An edit counts in two places: in a top-level statement with
such a part, and in a statement that defines a name used there.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from downriver.capture.scan.python.module_code import read_module_code
from downriver.model.unread import Unread, UnreadReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.capture.code import CodeJob
    from downriver.capture.scan import ScanResult
    from downriver.impact.changes.commits import FilePair

_PYTHON = (".py", ".ipynb")


def find_edited_spots(
    pairs: Sequence[FilePair], base: ScanResult, head: ScanResult
) -> Iterator[Unread]:
    """Yield the unknown parts that a job has in both commits, and that depend on edited code."""
    known = {job.id: job for job in base.jobs}
    for pair in pairs:
        if pair.base is None or pair.head is None or not pair.is_type(*_PYTHON):
            continue
        before, after = (read_module_code(pair.path, text) for text in (pair.base, pair.head))
        if before is None or after is None:
            continue  # reported as not parsable
        for job in head.jobs:
            was = _lines_of_spots(pair.path, known[job.id]) if job.id in known else {}
            for spot, lines in _lines_of_spots(pair.path, job).items():
                if spot in was and before.code_for(was[spot]) != after.code_for(lines):
                    detail = f"the edit may change this part: {spot[1]}"
                    reason = UnreadReason.DYNAMIC_CODE
                    yield Unread(path=pair.path, line=lines[0], reason=reason, detail=detail)


def _lines_of_spots(path: str, job: CodeJob) -> dict[tuple[str, str], list[int]]:
    """Return the lines in a file of a job's unknown parts, by kind and message.

    For a part in a file other than the job's own, the message names the place.
    """
    found: dict[tuple[str, str], list[int]] = {}
    for spot in job.spots:
        named = re.search(rf"{re.escape(path)}:(\d+)", spot.message)
        line = spot.line if job.path == path else int(named[1]) if named is not None else None
        if line is not None:
            found.setdefault((spot.kind, spot.message), []).append(line)
    return found
