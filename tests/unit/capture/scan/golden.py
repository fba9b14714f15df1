"""The golden cases of `tests/golden/scan`: code, and all that is read from it.

A file is a topic with its cases. A case has files by path (or one `code`, for `job.py`), known
schemas, and as text every job, dataset note and unread file. Anything else is a failure.
DOWNRIVER_UPDATE_GOLDEN=1 writes the actual result into the cases; review it before you commit it.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import yaml
from tests.unit.capture.code.lines import job_lines

from downriver.capture.scan import Repository, ScanCatalog, scan_repository

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.scan import ScanResult
    from downriver.model.ids import DatasetId

FOLDER = Path(__file__).parents[3] / "golden" / "scan"
UPDATE = os.environ.get("DOWNRIVER_UPDATE_GOLDEN") == "1"


class Case(msgspec.Struct, forbid_unknown_fields=True):
    """One golden case."""

    name: str
    code: str = ""
    files: dict[str, str] = {}
    schema: dict[str, list[str]] = {}
    expected: str = ""


def load_cases() -> dict[str, Case]:
    """Return the golden cases by `file/name`."""
    found: dict[str, Case] = {}
    for path in sorted(FOLDER.glob("*.yml")):
        for case in msgspec.convert(yaml.safe_load(path.read_text("utf-8")), list[Case]):
            found[f"{path.stem}/{case.name}"] = case
    return found


def read_case(case: Case, folder: Path) -> str:
    for path, text in (case.files or {"job.py": case.code}).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")

    def columns_of(dataset: DatasetId) -> list[str] | None:
        return case.schema.get(dataset.name)

    names = ScanCatalog(namespace="db", columns_of=columns_of)
    found = scan_repository(Repository(folder), names)
    return "".join(f"{line}\n" for line in _lines(found))


def _lines(found: ScanResult) -> Iterator[str]:
    for job in found.jobs:
        yield from job_lines(job, "db")
    for note in found.notes:
        words = [f"dataset {note.id.name}"]
        if note.columns:
            words.append(f"({', '.join(c.name for c in note.columns)})")
        words += [f"owners={note.owners}"] * bool(note.owners)
        words += [f"tags={note.tags}"] * bool(note.tags)
        words += [repr(note.description)] * bool(note.description)
        yield " ".join(words)
    for unread in found.unread:
        yield f"unread {unread.location} {unread.reason.value}: {unread.detail}"


def update(name: str, text: str) -> None:
    """Write the actual result into a case. All else stays."""
    topic, _, case = name.partition("/")
    path = FOLDER / f"{topic}.yml"
    body = "".join(f"    {line}\n" for line in text.splitlines())
    parts = re.split(r"(?m)^(?=- name: )", path.read_text("utf-8"))
    for at, part in enumerate(parts):
        if part.startswith(f"- name: {case}\n"):
            head = re.split(r"(?m)^  expected: ", part)[0].rstrip() + "\n"
            parts[at] = f"{head}  expected: |\n{body}\n" if body else f'{head}  expected: ""\n\n'
    path.write_text("".join(parts).rstrip() + "\n", "utf-8")
