"""Reports files that probably have lineage but are in a language that is not read."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from downriver.model.unread import Unread, UnreadReason

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.capture.scan.repository import Repository

_SPARK = r"\bspark\w*\.(?:sql|table|read|readStream)\b|\.(?:saveAsTable|insertInto)\("
_JDBC = r"\b(?:executeQuery|executeUpdate|prepareStatement)\("
_LANGUAGES = {
    ".js": ("Dataform", r"\b(?:publish|operate|assert)\(\s*[\"'`](?=(?s:.)*\.(?:query|queries)\()"),
    ".lkml": ("LookML", r"\bsql_table_name\s*:|\bderived_table\s*:"),
    ".dtsx": ("SSIS", r"<DTS:Executable\b"),
    ".ktr": ("Pentaho", r"<transformation\b"),
    ".kjb": ("Pentaho", r"<job\b"),
    ".malloy": ("Malloy", r"\bsource\s*:"),
    ".pig": ("Pig", r"(?i)\bLOAD\b"),
    ".scala": ("Scala", f"{_SPARK}|{_JDBC}"),
    ".java": ("Java", f"{_SPARK}|{_JDBC}"),
    ".kt": ("Kotlin", f"{_SPARK}|{_JDBC}"),
    ".r": ("R", r"\b(?:dbGetQuery|dbSendQuery|dbExecute|dbWriteTable|spark_read_\w+|sdf_sql)\("),
}


LANGUAGE_SUFFIXES = frozenset(_LANGUAGES)


def find_unread_languages(repository: Repository) -> Iterator[Unread]:
    """Yield the files whose language is not read, at the first line that reads or writes data."""
    if repository.root.is_file():
        return
    for path in repository.files(LANGUAGE_SUFFIXES):
        unread = find_unread_language(path, repository.read(path) or "")
        if unread is not None:
            yield unread


def find_unread_language(path: str, text: str) -> Unread | None:
    """Return an unread file, if its language is not read and its text reads or writes data."""
    language, pattern = _LANGUAGES[PurePosixPath(path).suffix.lower()]
    match = re.search(pattern, text)
    if match is None:
        return None
    line = text.count("\n", 0, match.start()) + 1
    detail = f"{language} files are not read"
    return Unread(path=path, line=line, reason=UnreadReason.FILE_TYPE, detail=detail)
