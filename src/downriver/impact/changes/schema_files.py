"""Edited definitions of tables in formats that are not read: Terraform, JSON, Avro, Protobuf."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from downriver.capture.scan import project_of
from downriver.impact.changes.commit_code import OTHER_LANGUAGES
from downriver.model.unread import Unread, UnreadReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from downriver.impact.changes.commit_code import CommitCode
    from downriver.impact.changes.commits import FilePair

_READ = (".sql", ".py", ".ipynb", ".sqlx", ".csv", *OTHER_LANGUAGES)
_CODE = (".sql", ".py", ".ipynb", ".sqlx", ".yml", ".yaml")
_DBT_FILES = frozenset(
    {
        "dbt_project.yml", "profiles.yml", "packages.yml", "dependencies.yml", "package-lock.yml",
        "selectors.yml",
    }
)  # fmt: skip
_COMMENT = re.compile(r"(?:^|(?<=\s))(?:#|//).*$", re.MULTILINE)
_WORD = re.compile(r"[^\W\d]\w{2,}")


def find_schema_edits(pairs: Sequence[FilePair], base: CommitCode) -> Iterator[Unread]:
    """Yield files that name a table and lost a word that code uses with this table.

    The word may be a column, and the file may define the table.
    """
    for pair in pairs:
        if pair.base is None or pair.head is None or pair.is_type(*_READ):
            continue
        if pair.is_type(".yml", ".yaml") and _is_of_dbt(pair.path, base):
            continue  # compared as settings and properties
        if any(part.startswith(".") for part in PurePosixPath(pair.path).parts):
            continue  # settings of the CI and of editors
        words = _words(_COMMENT.sub("", pair.base))
        dropped = words - _words(_COMMENT.sub("", pair.head))
        named = base.table_names & (words | {PurePosixPath(pair.path).stem.casefold()})
        lost = _used_with(named, dropped - base.table_names, base) if dropped and named else None
        if lost is not None:
            table, column = lost
            detail = f"it names the table {table}, and no longer names {column}"
            line = _line_of(pair.base, column)
            reason = UnreadReason.DYNAMIC_CODE
            yield Unread(path=pair.path, line=line, reason=reason, detail=detail)


def _is_of_dbt(path: str, base: CommitCode) -> bool:
    project = project_of(path, base.projects)
    name = PurePosixPath(path).name
    return project is not None and (project.kind_of(path) is not None or name in _DBT_FILES)


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def _used_with(
    tables: AbstractSet[str], words: set[str], base: CommitCode
) -> tuple[str, str] | None:
    """Return a table and a word that occur together in one code file."""
    for path in base.files:
        text = base.text(path).casefold() if path.endswith(_CODE) else ""
        found = [table for table in sorted(tables) if table in text]
        if found:
            used = sorted(words & _words(text))
            if used and tables & _words(text):
                return found[0], used[0]
    return None


def _line_of(text: str, word: str) -> int:
    found = re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE)
    return text.count("\n", 0, found.start()) + 1 if found is not None else 1
