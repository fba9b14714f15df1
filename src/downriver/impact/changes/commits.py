"""The files that differ between two commits, and what the scanner reads in them."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
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
from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

READ = (".sql", ".py", ".ipynb", ".yml", ".yaml")  # the files whose meaning can be compared
SEEDS = ("seeds/*.csv", "*/seeds/*.csv")


class CommitTrees(NamedTuple):
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
def open_trees(folder: Path, base: str, head: str | None) -> Iterator[CommitTrees]:
    """Lay out the code of two commits side by side; without `head`, the second is as it stands."""
    root = folder.joinpath(_git(folder, "rev-parse", "--show-toplevel").strip())
    with tempfile.TemporaryDirectory(prefix="downriver-") as place:
        before = _lay_out(folder, root, _commit(folder, base), Path(place) / "base")
        after = (
            root
            if head is None
            else _lay_out(folder, root, _commit(folder, head), Path(place) / "head")
        )
        yield CommitTrees(before, after)


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


_MACRO = re.compile(r"\{%-?\s*macro\s+(\w+)")
_SCANNED = (".py", ".ipynb", ".yml", ".yaml")


class EditedCode(NamedTuple):
    """Edited code: queries to compare as SQL, seeds, and what the scanner says of the rest."""

    queries: list[FilePair]
    seeds: list[FilePair]
    base: ScanResult
    head: ScanResult


CodeReader = Callable[[list[FilePair]], EditedCode]


def read_edited_files(pairs: Sequence[FilePair], names: ScanCatalog) -> EditedCode:
    """Read edited files without those around them."""
    base, head = ScanResult(files=0), ScanResult(files=0)
    for pair in pairs:
        if pair.path.endswith(_SCANNED):
            for text, side in ((pair.base, base), (pair.head, head)):
                if text is not None:
                    _add(side, scan_text(pair.path, text, names))
    return EditedCode(_queries(pairs), _seeds(pairs), base, head)


def _add(result: ScanResult, more: ScanResult) -> None:
    result.jobs += more.jobs
    result.unread += more.unread


def read_commits(pairs: Sequence[FilePair], names: ScanCatalog, trees: CommitTrees) -> EditedCode:
    """Read edited files, and unedited ones that use them, among all files of their commits."""
    sides = [_Side(Repository(folder), names) for folder in trees]
    used = {path for side in sides for path in side.using(pairs)}
    scanned = {pair.path for pair in pairs if pair.path.endswith(_SCANNED)}
    scanned |= {path for path in used if path.endswith(_SCANNED)}
    base, head = (side.scan(scanned) for side in sides)
    rendered = [pair for side in sides for pair in pairs if side.uses_macros(pair)]
    paths = {pair.path for pair in rendered} | {path for path in used if path.endswith(".sql")}
    queries = [pair for pair in _queries(pairs) if pair.path not in paths]
    queries += _rendered(paths, sides)
    macros = {path for side in sides for path in side.macro_files}
    queries = [pair for pair in queries if pair.path not in macros]
    return EditedCode(queries, _seeds(pairs), base, head)


def _queries(pairs: Sequence[FilePair]) -> list[FilePair]:
    return [pair for pair in pairs if pair.path.endswith(".sql")]


def _seeds(pairs: Sequence[FilePair]) -> list[FilePair]:
    return [pair for pair in pairs if pair.path.endswith(".csv")]


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

    def scan(self, paths: set[str]) -> ScanResult:
        """Read some files; those of them that are not there are left out."""
        only = sorted(paths & self._known)
        if not only:
            return ScanResult(files=0)
        return scan_repository(self._repository, self._names, only=only)

    def uses_macros(self, pair: FilePair) -> bool:
        """Tell whether a template calls a macro of the project."""
        text = f"{pair.base or ''} {pair.head or ''}"
        return pair.path.endswith(".sql") and "{" in text and bool(_called(text) & self._macros)

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
        """Return the macros of edited files, what reads edited settings, and who calls those."""
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
