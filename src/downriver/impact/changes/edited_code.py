"""What the scanner reads in the edited files of two commits, and in the files that use them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.scan import (
    Repository,
    ScanCatalog,
    ScanResult,
    find_projects,
    project_of,
    scan_repository,
    scan_text,
)
from downriver.impact.changes.commits import FilePair
from downriver.model.unread import Unread, UnreadReason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.impact.changes.commits import CommitTrees

_MACRO = re.compile(r"\{%-?\s*macro\s+(\w+)")
_SCANNED = (".py", ".ipynb", ".yml", ".yaml")


class EditedCode(NamedTuple):
    """Edited code: queries to compare as SQL, dbt macros, and what the scanner read of the rest."""

    queries: list[FilePair]
    macros: list[FilePair]
    base: ScanResult
    head: ScanResult
    unread: list[Unread]


CodeReader = Callable[[list[FilePair]], EditedCode]


def read_edited_files(pairs: Sequence[FilePair], names: ScanCatalog) -> EditedCode:
    """Read edited files without those around them."""
    base, head = ScanResult(files=0), ScanResult(files=0)
    for pair in pairs:
        if pair.is_type(*_SCANNED):
            for text, side in ((pair.base, base), (pair.head, head)):
                if text is not None:
                    _add(side, scan_text(pair.path, text, names))
    return EditedCode(_queries(pairs), [], base, head, [])


def _add(result: ScanResult, more: ScanResult) -> None:
    result.jobs += more.jobs
    result.unread += more.unread


def read_commits(pairs: Sequence[FilePair], names: ScanCatalog, trees: CommitTrees) -> EditedCode:
    """Read edited files, and unedited ones that use them, among all files of their commits."""
    base, head = (_Side(Repository(folder), names) for folder in trees)
    sides = [base, head]
    used = {path for side in sides for path in side.using(pairs)}
    scanned = {pair.path for pair in pairs if pair.is_type(*_SCANNED)}
    scanned |= {path for path in used if path.endswith(_SCANNED)}
    rendered = [pair for side in sides for pair in pairs if side.uses_macros(pair)]
    paths = {pair.path for pair in rendered} | {path for path in used if path.endswith(".sql")}
    queries = [pair for pair in _queries(pairs) if pair.path not in paths]
    queries += _rendered(paths, sides)
    macros = {path for side in sides for path in side.macro_files}
    return EditedCode(
        [pair for pair in queries if pair.path not in macros],
        [pair for pair in pairs if pair.path in macros],
        base.scan(scanned),
        head.scan(scanned),
        list(_left_out(pairs, head)),
    )


def _left_out(pairs: Sequence[FilePair], head: _Side) -> Iterator[Unread]:
    """Yield edited code in folders that a scan leaves out, such as build/ or ignored ones."""
    for pair in pairs:
        if pair.head is not None and pair.is_type(".py", ".ipynb") and not head.has(pair.path):
            reason = UnreadReason.SKIPPED_FOLDER
            yield Unread(path=pair.path, line=0, reason=reason, detail="in a folder not scanned")


def _queries(pairs: Sequence[FilePair]) -> list[FilePair]:
    return [pair for pair in pairs if pair.is_type(".sql")]


def _rendered(paths: set[str], sides: list[_Side]) -> Iterator[FilePair]:
    """Yield models as they are with the macros of their own commit."""
    texts = [{job.path: job.sql for job in side.scan(paths).jobs} for side in sides]
    for path in sorted(paths):
        before, after = (found.get(path) for found in texts)
        if before != after:
            yield FilePair(path, before, after)


class _Side:
    """One of the two commits."""

    def __init__(self, repository: Repository, names: ScanCatalog) -> None:
        self._repository = repository
        self._names = names
        self._files = list(repository.files())
        self._known = frozenset(self._files)
        self._projects = repository.once(
            "dbt", self._files, lambda: find_projects(repository, self._files)
        )
        self._macros = {
            name for project in self._projects for text in project.macros
            for name in _MACRO.findall(text)
        }  # fmt: skip
        self.macro_files = {
            path
            for path in self._files
            for project in self._projects
            if path.endswith(".sql") and project.kind_of(path) == "macro"
        }

    def has(self, path: str) -> bool:
        """Tell whether a scan of this commit reads a file."""
        return path in self._known

    def scan(self, paths: set[str]) -> ScanResult:
        """Read some files; those of them that are not there are left out."""
        only = sorted(paths & self._known)
        if not only:
            return ScanResult(files=0)
        return scan_repository(self._repository, self._names, only=only)

    def uses_macros(self, pair: FilePair) -> bool:
        """Tell whether a template calls a macro of the project."""
        text = f"{pair.base or ''} {pair.head or ''}"
        return pair.is_type(".sql") and "{" in text and bool(_called(text) & self._macros)

    def using(self, pairs: Sequence[FilePair]) -> Iterator[str]:
        """Yield the files that use edited ones: they may mean something else now."""
        modules = {PurePosixPath(p.path).stem for p in pairs if p.path.endswith(".py")}
        macros = self._edited_calls(pairs)
        edited = {pair.path for pair in pairs}
        for path in self._files if modules or macros else ():
            if path not in edited and self._is_using(path, modules, macros):
                yield path

    def _is_using(self, path: str, modules: set[str], macros: set[str]) -> bool:
        if modules and path.endswith((".py", ".ipynb")):
            return bool(_imported(self._repository.read(path) or "") & modules)
        if macros and path.endswith(".sql") and path not in self.macro_files:
            return bool(_called(self._repository.read(path) or "") & macros)
        return False

    def _edited_calls(self, pairs: Sequence[FilePair]) -> set[str]:
        """Return edited macros, functions that read edited settings, and macros that call them."""
        texts = [f"{p.base or ''} {p.head or ''}" for p in pairs if p.path in self.macro_files]
        found = {name for text in texts for name in _MACRO.findall(text)}
        for pair in pairs:
            if pair.path.endswith((".yml", ".yaml")) and project_of(pair.path, self._projects):
                of_project = PurePosixPath(pair.path).name == "dbt_project.yml"
                found.add("var" if of_project else "source")
        if not found:
            return found
        for project in self._projects:
            for text in project.macros:
                if _called(text) & found:
                    found |= set(_MACRO.findall(text))
        return found


_CALL = re.compile(r"\b(\w+)\s*\(")
_IMPORT = re.compile(r"^\W*(?:from|import)\s[^\n(]*(?:\([^)]*\))?", re.MULTILINE)


def _called(text: str) -> set[str]:
    return set(_CALL.findall(text))


def _imported(text: str) -> set[str]:
    """Return every word of the imports of a module."""
    return {word for found in _IMPORT.findall(text) for word in re.findall(r"\w+", found)}
