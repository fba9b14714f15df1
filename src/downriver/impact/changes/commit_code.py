"""The code of one commit: its dbt projects, the users of a file, and the readers of a table."""

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
from downriver.capture.scan.python.source_files import PythonFile
from downriver.capture.scan.sqlmesh import is_sqlmesh
from downriver.impact.changes.dbt.settings import list_edited_sources, list_edited_variables
from downriver.impact.changes.name_uses import (
    CarriedNames,
    NameUses,
    list_calls,
    list_imports,
    list_macros,
    list_parts,
    macro_names,
    split_macros,
)
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
_WORD = re.compile(r"\w+")
_QUOTED = re.compile(r"""['"]([^'"\n]+)['"]""")
# In Python: a value from outside the code, which may be the name of a table.
_FROM_OUTSIDE = re.compile(
    r"\b(?:argv|argparse|optparse|ArgumentParser|environ|getenv|getResolvedOptions|widgets|click|typer"
    r"|fire|absl|configparser|ConfigParser|safe_load|toml|tomllib|hydra|OmegaConf|Variable|input)\b"
    r"|\bjson\.loads?\b"
)
_STAR = re.compile(r"(?:select|distinct|,|\.|\bexcept)\s*\*|\bstar\s*\(", re.IGNORECASE)
_WRITTEN = re.compile(
    r"\b(?:table|view|into|overwrite|update)\s+(?:if\s+not\s+exists\s+)?[\"`\[]?([\w.\"`\[\]-]+)",
    re.IGNORECASE,
)


def check_language(path: str, text: str) -> list[Unread]:
    """Return a blind spot if a file may use tables and its language is not read.

    Migrations in such a file are found by keywords.
    """
    unread = find_unread_language(path, text)
    return [replace(unread, reason=UnreadReason.DYNAMIC_CODE)] if unread is not None else []


class CommitCode:
    """The files of one commit, read as far as they are needed."""

    def __init__(self, repository: Repository, names: ScanCatalog) -> None:
        self._repository = repository
        self._names = names
        read = list(repository.files())
        self.files = [*read, *repository.files(LANGUAGE_SUFFIXES)]
        self._known = frozenset(self.files)
        self._texts: dict[str, str] = {}
        self._uses: dict[str, NameUses] = {}
        self._filled: dict[str, set[str]] = {}
        self.projects = find_projects(repository, read, names.dialect)
        self.macro_names = {
            name for project in self.projects for text in project.macros
            for name in list_macros(text)
        }  # fmt: skip
        self._kinds: dict[str, str | None] = {}
        self.macro_files = {
            path for path in self.files if path.endswith(".sql") and self._kind(path) == "macro"
        }

    @property
    def namespace(self) -> str:
        """The namespace of the jobs that this code defines."""
        return self._names.namespace

    def has(self, path: str) -> bool:
        """Return whether a scan of this commit reads a file."""
        return path in self._known

    def text(self, path: str) -> str:
        """Return the text of a file; empty when it cannot be read."""
        if path not in self._texts:
            self._texts[path] = self._repository.read(path) or ""
        return self._texts[path]

    def scan(self, paths: Iterable[str]) -> ScanResult:
        """Read some files. Missing files are left out."""
        wanted = sorted(self._known.intersection(paths))
        other = [path for path in wanted if path.lower().endswith(OTHER_LANGUAGES)]
        only = [path for path in wanted if path not in other]
        result = ScanResult(files=0)
        if only:
            result = scan_repository(self._repository, self._names, only=only)
            result.unread = [self._weaken(unread) for unread in result.unread]
        for path in other:
            result.unread += check_language(path, self.text(path))
        return result

    def disabled_tables(self, paths: Iterable[str]) -> set[str]:
        """Return the tables of the dbt models in some files that are turned off, case-folded."""
        return {
            model.table.casefold()
            for path in self._known.intersection(paths)
            for project in [project_of(path, self.projects)]
            if project is not None and self._kind(path) in _STORED
            for model in project.models_in(path)
            if project.is_disabled(model, self.text(path))
        }

    def _weaken(self, unread: Unread) -> Unread:
        """Weaken the fault of unparsable Python that contains no word about data."""
        is_python = unread.reason is UnreadReason.PYTHON_SYNTAX and unread.path.endswith(".py")
        if is_python and not PythonFile(unread.path, self.text(unread.path)).concerns_data:
            return replace(unread, reason=UnreadReason.DYNAMIC_CODE)
        return unread

    def _kind(self, path: str) -> str | None:
        if path not in self._kinds:
            project = project_of(path, self.projects)
            self._kinds[path] = project.kind_of(path) if project is not None else None
        return self._kinds[path]

    # Files that use an edited file

    def uses_macros(self, pair: FilePair) -> bool:
        """Return whether a template calls a macro of the project."""
        text = f"{pair.base or ''} {pair.head or ''}"
        return pair.is_type(".sql") and "{" in text and bool(list_calls(text) & self.macro_names)

    def using(self, pairs: Sequence[FilePair]) -> Iterator[str]:
        """Yield the files that use edited files: their meaning may have changed."""
        modules = {PurePosixPath(p.path).stem for p in pairs if p.path.endswith(".py")}
        macros = self._edited_macros(pairs)
        names = self._edited_names(pairs)
        for project in self.projects if macros or names else ():
            for text in project.macros:
                if list_calls(text) & macros or _quoted(text) & names:
                    macros |= list_macros(text)
        edited = {pair.path for pair in pairs}
        for path in self.files if modules or macros or names else ():
            if path not in edited and self._is_using(path, modules, macros, names):
                yield path

    def _is_using(self, path: str, modules: set[str], macros: set[str], names: set[str]) -> bool:
        if modules and path.endswith(_PYTHON):
            return bool(list_imports(self.text(path)) & modules)
        if (macros or names) and path.endswith(".sql") and path not in self.macro_files:
            text = self.text(path)
            return bool(list_calls(text) & macros or _quoted(text) & names)
        return False

    def _edited_macros(self, pairs: Sequence[FilePair]) -> set[str]:
        texts = [f"{p.base or ''} {p.head or ''}" for p in pairs if p.path in self.macro_files]
        return {name for text in texts for name in list_macros(text)}

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
        if self._kind(path) in _STORED and path.endswith((".sql", ".yml", ".yaml")):
            return {name.casefold() for name in self._model_names(path)}
        if path in self.macro_files or not path.endswith((*_SQL, *_PYTHON)):
            return set()
        if path not in self._filled:
            jobs = self.scan([path]).jobs
            self._filled[path] = {short_name(d.name).casefold() for j in jobs for d in j.outputs}
        return self._filled[path]

    def _model_names(self, path: str) -> set[str]:
        """Return the names of a file's dbt models in `ref`, and the short names of their tables."""
        project = project_of(path, self.projects)
        models = project.models_in(path) if project is not None else ()
        return {name for model in models for name in (model.name, short_name(model.table))}

    def job_names(self, path: str) -> set[str]:
        """Return the short names of the jobs of a file's dbt models."""
        project = project_of(path, self.projects)
        models = project.models_in(path) if project is not None else ()
        return {short_name(model.job) for model in models}

    def is_read_whole(self, path: str) -> bool:
        """Return whether a SQL file has jobs of its own format, which the scanner has to read."""
        return path.endswith(".sql") and (
            self._kind(path) == "snapshot" or is_sqlmesh(self.text(path))
        )

    def downstream(self, tables: Iterable[str], paths: Iterable[str]) -> set[str]:
        """Return the files that may read these tables or what these files fill, at any distance.

        Files are matched by the names in them: more may be returned, but none is missed whose code
        names what it reads.
        """
        found = set(paths) & self._known
        outputs = (name for path in found for name in self.outputs(path))
        wanted = CarriedNames(frozenset(name.casefold() for name in (*tables, *outputs)))
        done = CarriedNames()
        while any(new := wanted.minus(done)):
            done |= new
            wanted |= CarriedNames(self._variables_with(new.tables))
            parts = [list_parts(name) for name in new.tables]
            for path in self.files:
                if path in found and path not in self.macro_files:
                    continue
                carried = self._names_passed_on(path, new, parts)
                if carried is not None:
                    found.add(path)
                    wanted |= carried
        return found

    def _variables_with(self, tables: frozenset[str]) -> frozenset[str]:
        """Return the variables of dbt projects whose values name one of these tables."""
        return frozenset(
            name for name, words in self._words_of_variables.items() if not tables.isdisjoint(words)
        )

    @cached_property
    def _words_of_variables(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {}
        for project in self.projects:
            for name, value in project.variables.items():
                words = _WORD.findall(str(value).casefold())
                found.setdefault(name.casefold(), set()).update(words)
        return found

    def _names_passed_on(
        self, path: str, names: CarriedNames, parts: list[frozenset[str]]
    ) -> CarriedNames | None:
        """Return the names under which other files use what this file reads; None: it does not."""
        if path in self.macro_files:
            macros = {
                name
                for macro, uses in self._macros.get(path, {}).items()
                if uses.mentions(names, parts, self._fragments_of_macros(uses))
                for name in macro_names(macro)
            }
            return CarriedNames(macros=frozenset(macros)) if macros else None
        uses = self._uses_of(path)
        if not uses.mentions(names, parts, self._fragments_of_macros(uses)):
            return None
        filled = frozenset(self.outputs(path))
        if path.endswith(".py") and not filled:  # a module of constants or functions
            file = PurePosixPath(path)
            module = file.parent.name if file.stem == "__init__" else file.stem
            return CarriedNames(modules=frozenset({module.casefold()}))
        return CarriedNames(filled)

    def _uses_of(self, path: str) -> NameUses:
        if path not in self._uses:
            self._uses[path] = NameUses(path, self.text(path))
        return self._uses[path]

    @cached_property
    def _macros(self) -> dict[str, dict[str, NameUses]]:
        """The names that each macro uses, by the path of its file and by its name."""
        return {
            path: {
                name.casefold(): NameUses(path, text)
                for name, text in split_macros(self.text(path)).items()
            }
            for path in self.macro_files
        }

    @cached_property
    def _computing_macros(self) -> dict[str, frozenset[str]]:
        """The parts of names in macros that compute what they refer to, by name of the macro."""
        return {
            name: uses.fragments
            for macros in self._macros.values()
            for macro, uses in macros.items()
            if uses.has_computed_resources
            for name in macro_names(macro)
        }

    def _fragments_of_macros(self, uses: NameUses) -> frozenset[str]:
        """Return the parts that called macros may add to an argument to get a name."""
        called = uses.calls & self._computing_macros.keys()
        return frozenset().union(*(self._computing_macros[name] for name in called))

    def parameterized(self) -> set[str]:
        """Return the Python files that may get the names of their tables from outside.

        These are files that read arguments, the environment or settings, and those that import one.
        """
        found = {
            path
            for path in self.files
            if path.endswith(_PYTHON) and _FROM_OUTSIDE.search(self.text(path))
        }
        modules = {PurePosixPath(path).stem for path in found}
        return found | {
            path
            for path in self.files
            if path.endswith(_PYTHON) and not modules.isdisjoint(list_imports(self.text(path)))
        }

    def upstream(self, paths: Iterable[str], edited: Iterable[tuple[str, str]] = ()) -> set[str]:
        """Return the files that define the columns which these files read.

        `edited` are path and text of files of another commit. The files are those of each table
        they name, and, behind a `*`, the files before it.
        """
        found = {
            origin
            for path, text in edited
            for name in NameUses(path, text).tables
            for origin in self._files_by_table.get(name, ())
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
            names |= self._uses_of(path).tables & self._files_by_table.keys()
        return {origin for name in names for origin in self._files_by_table.get(name, ())} - {path}

    @cached_property
    def table_names(self) -> frozenset[str]:
        """The case-folded short names of the tables that dbt projects name or SQL files fill."""
        relations = (name for project in self.projects for name in project.names.values())
        return frozenset(self._files_by_table) | {short_name(name).casefold() for name in relations}

    @cached_property
    def _files_by_table(self) -> dict[str, list[str]]:
        """The files that seem to fill a table, by its case-folded short name."""
        found: dict[str, list[str]] = {}
        for path in self.files:
            if path.endswith((".yml", ".yaml")):
                names = self._model_names(path)
            elif not path.endswith(_SQL):
                continue
            elif path.endswith(".sqlx"):
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
