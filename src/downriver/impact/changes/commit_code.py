"""The code of one commit: its dbt projects, who uses an edited file, and who reads a table."""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from msgspec.structs import replace

from downriver.capture.code.dbt_resources import list_refs
from downriver.capture.scan import (
    LANGUAGE_SUFFIXES,
    SQL_SUFFIXES,
    Repository,
    ScanCatalog,
    ScanResult,
    find_projects,
    find_unread_language,
    project_of,
    scan_repository,
)
from downriver.impact.changes.dbt_settings import list_edited_sources, list_edited_variables
from downriver.model.ids import short_name
from downriver.model.unread import UnreadReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from downriver.impact.changes.commits import FilePair
    from downriver.model.unread import Unread

# Compared by what the scanner reads in them.
OTHER_LANGUAGES = tuple(LANGUAGE_SUFFIXES)
SCANNED = (".py", ".ipynb", ".yml", ".yaml", ".sqlx", *OTHER_LANGUAGES)
_PYTHON = (".py", ".ipynb")
_SQL = (*SQL_SUFFIXES, ".sqlx")
_STORED = ("model", "snapshot")
_MACRO = re.compile(r"\{%-?\s*(?:macro|test|materialization)\s+(\w+)")
_WORD = re.compile(r"\w+")
_PART = re.compile(r"[^\W_]+")
_CALL = re.compile(r"\b(\w+)\s*\(")
_QUOTED = re.compile(r"""['"]([^'"\n]+)['"]""")
_IMPORT = re.compile(r"^\W*(?:from|import)\s[^\n(]*(?:\([^)]*\))?", re.MULTILINE)
_DYNAMIC = re.compile(r"\{%|~|\$\{|%\(|\|\|")  # in SQL: names may be put together from parts
_STAR = re.compile(r"(?:select|distinct|,|\.|\bexcept)\s*\*|\bstar\s*\(", re.IGNORECASE)
_WRITTEN = re.compile(
    r"\b(?:table|view|into|overwrite|update)\s+(?:if\s+not\s+exists\s+)?[\"`\[]?([\w.\"`\[\]-]+)",
    re.IGNORECASE,
)


def check_language(path: str, text: str) -> list[Unread]:
    """Return that a file may use tables, if its language is not read.

    Migrations in such a file are found by their words.
    """
    unread = find_unread_language(path, text)
    return [replace(unread, reason=UnreadReason.DYNAMIC_CODE)] if unread is not None else []


class CommitCode:
    """The files of one commit, read as far as they are needed."""

    def __init__(self, repository: Repository, names: ScanCatalog) -> None:
        self._repository = repository
        self._names = names
        self.files = [*repository.files(), *repository.files(LANGUAGE_SUFFIXES)]
        self._known = frozenset(self.files)
        self._texts: dict[str, str] = {}
        self._words: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
        self.projects = find_projects(repository, self.files, names.dialect)
        self.macro_names = {
            name for project in self.projects for text in project.macros
            for name in _MACRO.findall(text)
        }  # fmt: skip
        self._kinds: dict[str, str | None] = {}
        self.macro_files = {
            path for path in self.files if path.endswith(".sql") and self._kind(path) == "macro"
        }

    @property
    def namespace(self) -> str:
        """The namespace of what this code defines."""
        return self._names.namespace

    def has(self, path: str) -> bool:
        """Tell whether a scan of this commit reads a file."""
        return path in self._known

    def text(self, path: str) -> str:
        """Return the text of a file; empty when it cannot be read."""
        if path not in self._texts:
            self._texts[path] = self._repository.read(path) or ""
        return self._texts[path]

    def scan(self, paths: Iterable[str]) -> ScanResult:
        """Read some files; those of them that are not there are left out."""
        wanted = sorted(self._known.intersection(paths))
        other = [path for path in wanted if path.lower().endswith(OTHER_LANGUAGES)]
        only = [path for path in wanted if path not in other]
        result = ScanResult(files=0)
        if only:
            result = scan_repository(self._repository, self._names, only=only)
        for path in other:
            result.unread += check_language(path, self.text(path))
        return result

    def _kind(self, path: str) -> str | None:
        if path not in self._kinds:
            project = project_of(path, self.projects)
            self._kinds[path] = project.kind_of(path) if project is not None else None
        return self._kinds[path]

    # Files that use an edited file

    def uses_macros(self, pair: FilePair) -> bool:
        """Tell whether a template calls a macro of the project."""
        text = f"{pair.base or ''} {pair.head or ''}"
        return pair.is_type(".sql") and "{" in text and bool(_called(text) & self.macro_names)

    def using(self, pairs: Sequence[FilePair]) -> Iterator[str]:
        """Yield the files that use edited ones: they may mean something else now."""
        modules = {PurePosixPath(p.path).stem for p in pairs if p.path.endswith(".py")}
        macros = self._edited_macros(pairs)
        names = self._edited_names(pairs)
        for project in self.projects if macros or names else ():
            for text in project.macros:
                if _called(text) & macros or _quoted(text) & names:
                    macros |= set(_MACRO.findall(text))
        edited = {pair.path for pair in pairs}
        for path in self.files if modules or macros or names else ():
            if path not in edited and self._is_using(path, modules, macros, names):
                yield path

    def _is_using(self, path: str, modules: set[str], macros: set[str], names: set[str]) -> bool:
        if modules and path.endswith(_PYTHON):
            return bool(_imported(self.text(path)) & modules)
        if (macros or names) and path.endswith(".sql") and path not in self.macro_files:
            text = self.text(path)
            return bool(_called(text) & macros or _quoted(text) & names)
        return False

    def _edited_macros(self, pairs: Sequence[FilePair]) -> set[str]:
        texts = [f"{p.base or ''} {p.head or ''}" for p in pairs if p.path in self.macro_files]
        return {name for text in texts for name in _MACRO.findall(text)}

    def _edited_names(self, pairs: Sequence[FilePair]) -> set[str]:
        """Return the variables and source tables that edited YAML files define in another way."""
        found: set[str] = set()
        for pair in pairs:
            if not pair.is_type(".yml", ".yaml") or not project_of(pair.path, self.projects):
                continue
            if PurePosixPath(pair.path).name == "dbt_project.yml":
                found |= list_edited_variables(pair)
            else:
                found |= list_edited_sources(pair)
        return found

    # Files that read or write a table

    def outputs(self, path: str) -> set[str]:
        """Return the short names of the tables that a file fills, case-folded."""
        if self._kind(path) in _STORED and path.endswith(".sql"):
            return {name.casefold() for name in self._model_names(path)}
        if path in self.macro_files or not path.endswith((*_SQL, *_PYTHON)):
            return set()
        return {short_name(d.name) for job in self.scan([path]).jobs for d in job.outputs}

    def _model_names(self, path: str) -> set[str]:
        """Return the name of a dbt model in `ref`, and the short name of its table."""
        project = project_of(path, self.projects)
        model = None if project is None else project.model_at(path, self.text(path))
        return set() if model is None else {model.name, short_name(model.table)}

    def downstream(self, tables: Iterable[str], paths: Iterable[str]) -> set[str]:
        """Return the files that may read these tables or what these files fill, at any distance.

        Files are matched by the words in them: more may be returned, but none is missed whose code
        names what it reads.
        """
        found = set(paths) & self._known
        wanted = {name.casefold() for name in tables}
        for path in found:
            wanted |= self.outputs(path)
        done: set[str] = set()
        while wanted - done:
            new = wanted - done
            done |= new
            parts = {name: frozenset(_PART.findall(name)) for name in new}
            for path in self.files:
                if path not in found and self._mentions(path, new, parts):
                    found.add(path)
                    wanted |= self._carried_by(path)
        return found

    def _carried_by(self, path: str) -> set[str]:
        """Return the names under which other files use what this file reads."""
        if path in self.macro_files:
            return {name.casefold() for name in _MACRO.findall(self.text(path))}
        filled = self.outputs(path)
        if path.endswith(".py") and not filled:
            filled = {PurePosixPath(path).stem.casefold()}  # a module of constants or functions
        return filled

    def _mentions(self, path: str, names: set[str], parts: dict[str, frozenset[str]]) -> bool:
        words, pieces = self._words_of(path)
        if not words.isdisjoint(names):
            return True
        return bool(pieces) and any(part and part <= pieces for part in parts.values())

    def _words_of(self, path: str) -> tuple[frozenset[str], frozenset[str]]:
        """Return the words of a file, and their parts where its code may put names together."""
        if path not in self._words:
            text = self.text(path).casefold()
            words = frozenset(_WORD.findall(text))
            is_dynamic = path.endswith(_PYTHON) or (
                path.endswith(".sql") and _DYNAMIC.search(text) is not None
            )
            pieces = frozenset(_PART.findall(text)) if is_dynamic else frozenset()
            self._words[path] = (words, pieces)
        return self._words[path]

    def upstream(self, paths: Iterable[str], texts: Iterable[str] = ()) -> set[str]:
        """Return the files that define the columns which these files, or other texts, read.

        That is the file of each table they name, and, behind a `*`, the files before it.
        """
        found = {
            origin
            for text in texts
            for word in _WORD.findall(text)
            for origin in self._written.get(word.casefold(), ())
        }
        todo = [path for path in {*paths, *found} if path in self._known]
        read = set(todo)
        while todo:
            for origin in self._writers_for(todo.pop()) - read:
                read.add(origin)
                found.add(origin)
                if _STAR.search(self.text(origin)):
                    todo.append(origin)
        return found

    def _writers_for(self, path: str) -> set[str]:
        text = self.text(path)
        names = {name.casefold() for name in list_refs(text)}
        if self._kind(path) is None and path.endswith((*_SQL, *_PYTHON)):
            names |= self._words_of(path)[0] & self._written.keys()
        return {origin for name in names for origin in self._written.get(name, ())} - {path}

    @cached_property
    def _written(self) -> dict[str, list[str]]:
        """The files that seem to fill a table, by its case-folded short name."""
        found: dict[str, list[str]] = {}
        for path in self.files:
            if not path.endswith(_SQL):
                continue
            if path.endswith(".sqlx"):
                names = {PurePosixPath(path).stem}
            elif self._kind(path) in _STORED:
                names = self._model_names(path)
            elif self._kind(path) is None:
                names = {
                    short_name(name.strip('"`[]')) for name in _WRITTEN.findall(self.text(path))
                }
            else:
                continue
            for name in names:
                found.setdefault(name.casefold(), []).append(path)
        return found


def _quoted(text: str) -> set[str]:
    """Return the words in quotes, as arguments of `var` and `source` are."""
    return set(_QUOTED.findall(text))


def _called(text: str) -> set[str]:
    return set(_CALL.findall(text))


def _imported(text: str) -> set[str]:
    """Return every word of the imports of a module."""
    return {word for found in _IMPORT.findall(text) for word in _WORD.findall(found)}
