"""The files of a repository to read. No file outside of its folder is read."""

from __future__ import annotations

import io
import os
import subprocess
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from contextlib import suppress
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path, PurePosixPath
from tokenize import detect_encoding
from typing import TYPE_CHECKING, Any, TypeVar

from downriver.capture.code.yaml_documents import YamlError, load_values
from downriver.errors import InvalidRequestError
from downriver.model.unread import Unread, UnreadReason

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

MAX_FILE_BYTES = 2 * 2**20  # code written by people is smaller
REPLACEMENT = "\ufffd"  # in place of bytes that cannot be decoded
SQL_SUFFIXES = frozenset({
    ".sql", ".ddl", ".dml", ".hql", ".psql", ".tsql", ".plsql", ".pls", ".pks", ".pkb", ".pkg",
    ".prc", ".fnc", ".trg", ".bteq",
})  # fmt: skip
SUFFIXES = SQL_SUFFIXES | {".py", ".ipynb", ".yml", ".yaml", ".sqlx"}
_SKIPPED = frozenset({
    ".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", "node_modules", "__pycache__",
    ".mypy_cache", ".pytest_cache", ".ruff_cache", "dbt_packages", "dbt_modules", "site-packages",
    ".ipynb_checkpoints", ".downriver", ".eggs", ".idea", ".vscode", ".terraform",
})  # fmt: skip
_OUTPUT = frozenset({"build", "dist", "env"})  # skipped unless git tracks files in it


Made = TypeVar("Made")


class Repository:
    """A folder of code."""

    def __init__(self, root: Path, *, is_fixed: bool = False) -> None:
        """Open a folder. `is_fixed`: its files do not change, so they are listed and read once."""
        if not root.exists():
            raise InvalidRequestError("PATH", f"{root}: no such file or directory")
        self.root = root.resolve()
        self._ignored = _ignore_patterns(self.root)
        self._made: dict[str, tuple[object, Any]] = {}
        self._is_fixed = is_fixed
        self._texts: dict[str, str | None] = {}
        self._unlisted: dict[str, str] = {}  # folders that cannot be listed, with the error

    def unlisted(self) -> Iterator[Unread]:
        """Yield the folders that `files` could not list, such as those without permission."""
        for path, error in self._unlisted.items():
            detail = f"the folder cannot be listed: {error}"
            yield Unread(path=path, line=0, reason=UnreadReason.NOT_FOUND, detail=detail)

    def files(self, suffixes: Container[str] = SUFFIXES) -> Iterator[str]:
        """Yield the paths of the files to read, relative to the root, in order.

        A file that git tracks is read even if a pattern of .gitignore matches it.
        """
        if self._is_fixed and suffixes is SUFFIXES:
            yield from self._listed
        else:
            yield from self._walk(suffixes)

    @cached_property
    def _listed(self) -> list[str]:
        return list(self._walk(SUFFIXES))

    def _walk(self, suffixes: Container[str]) -> Iterator[str]:
        if self.root.is_file():
            yield self.root.name
            return
        output: set[Path] = set()
        for folder, folders, names in os.walk(self.root, onerror=self._note_error):
            here = Path(folder).relative_to(self.root)
            if "dbt_project.yml" in names:
                output |= _dbt_output(self._read((here / "dbt_project.yml").as_posix()), here)
            folders[:] = sorted(
                name
                for name in folders
                if here / name not in output and not self._is_skipped(here / name)
            )
            for name in sorted(names):
                path = here / name
                if path.suffix.lower() in suffixes and not self._is_ignored(path):
                    yield path.as_posix()

    def find(self, path: str) -> Path | None:
        """Return a file of the repository; None when it is missing or outside of the folder."""
        base = self.root if self.root.is_dir() else self.root.parent
        file = (base / path).resolve()
        return file if file.is_relative_to(base) and file.is_file() else None

    def read(self, path: str) -> str | None:
        """Return the text of a file; None when `check_readable` gives a reason not to read it.

        Bytes that cannot be decoded become `REPLACEMENT`.
        """
        if not self._is_fixed:
            return self._read(path)
        if path not in self._texts:
            self._texts[path] = self._read(path)
        return self._texts[path]

    def _read(self, path: str) -> str | None:
        file = self.find(path)
        if file is None or file.stat().st_size > MAX_FILE_BYTES:
            return None
        content = file.read_bytes()
        return content.decode(_encoding(path, content), errors="replace")

    def check_readable(self, path: str) -> Unread | None:
        """Return why a file cannot be read completely; None when it can."""
        file = self.find(path)
        if file is None:
            return Unread(path=path, line=0, reason=UnreadReason.NOT_FOUND, detail="no such file")
        if file.stat().st_size > MAX_FILE_BYTES:
            detail = f"the file is larger than {MAX_FILE_BYTES // 2**20} MB"
            return Unread(path=path, line=0, reason=UnreadReason.TOO_LARGE, detail=detail)
        content = file.read_bytes()
        try:
            content.decode(_encoding(path, content))
        except UnicodeDecodeError as exc:
            line = content.count(b"\n", 0, exc.start) + 1
            detail = f"byte 0x{content[exc.start]:02x} is not text"
            return Unread(path=path, line=line, reason=UnreadReason.ENCODING, detail=detail)
        return None

    def once(self, key: str, files: list[str], make: Callable[[], Made]) -> Made:
        """Return the result of `make`, which runs again only when one of the files has changed."""
        stamp: object = len(files)
        if not self._is_fixed:
            stamp = tuple((path, *self._stamp(path)) for path in files)
        known = self._made.get(key)
        if known is None or known[0] != stamp:
            known = self._made[key] = (stamp, make())
        result: Made = known[1]
        return result

    def _stamp(self, path: str) -> tuple[int, int]:
        file = self.find(path)
        if file is None:
            return (0, 0)
        status = file.stat()
        return (status.st_mtime_ns, status.st_size)

    def folders_in(self, folder: str) -> list[str]:
        """Return the folders in a folder, which may be one that `files` leaves out."""
        place = self.root / folder
        if not place.resolve().is_relative_to(self.root) or not place.is_dir():
            return []
        return sorted(f"{folder}/{path.name}" for path in place.iterdir() if path.is_dir())

    def files_in(self, folder: str, suffix: str) -> list[str]:
        """Return the files below a folder, which may be one that `files` leaves out."""
        place = self.root / folder
        if not place.resolve().is_relative_to(self.root) or not place.is_dir():
            return []
        return sorted(path.relative_to(self.root).as_posix() for path in place.rglob(f"*{suffix}"))

    def find_ending(self, path: str) -> str | None:
        """Return the file at a path, or the only file whose path ends with it."""
        if self.find(path) is not None:
            return path
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            return None
        fitting = [file for file in self.files() if file.endswith(f"/{path}")]
        return fitting[0] if len(fitting) == 1 else None

    def find_near(self, path: str, beside: str) -> str | None:
        """Return the path of a file that another file names.

        It is searched at the root, beside the other file and in `sql` folders.
        """
        folder = PurePosixPath(beside).parent
        for place in (path, f"{folder}/{path}", f"{folder}/sql/{path}", f"sql/{path}"):
            if self.find(place) is not None:
                return PurePosixPath(place).as_posix()
        return None

    def _is_skipped(self, folder: Path) -> bool:
        name = folder.name
        if name in _SKIPPED:
            return True
        if name in _OUTPUT and folder.as_posix() not in self._tracked:
            return True
        try:
            is_link = (self.root / folder).is_symlink()
        except OSError as exc:  # for example, the path is too long for the system
            self._unlisted[folder.as_posix()] = exc.strerror or type(exc).__name__
            return True
        return is_link or self._is_ignored(folder)

    def _note_error(self, error: OSError) -> None:
        folder = Path(os.fsdecode(error.filename)).relative_to(self.root)
        self._unlisted[folder.as_posix()] = error.strerror or type(error).__name__

    @cached_property
    def _tracked(self) -> frozenset[str]:
        """The files that git tracks and their folders; none outside of a git repository."""
        command = ["git", "-c", "core.fsmonitor=false", "ls-files", "-z"]
        try:
            listed = subprocess.run(  # noqa: S603
                command, cwd=self.root, capture_output=True, check=True, timeout=60
            )
        except (OSError, subprocess.SubprocessError):
            return frozenset()
        files = [PurePosixPath(os.fsdecode(name)) for name in listed.stdout.split(b"\0") if name]
        folders = {folder for file in files for folder in file.parents}
        return frozenset(path.as_posix() for path in (*files, *folders))

    def _is_ignored(self, path: Path) -> bool:
        """Whether the .gitignore of the root excludes a path or a folder above it."""
        if not self._ignored or path.as_posix() in self._tracked:
            return False
        return any(map(self._is_excluded, (path, *path.parents)))

    def _is_excluded(self, path: Path) -> bool:
        """Whether .gitignore excludes a path by itself. The last matching pattern decides."""
        excluded = False
        for pattern in self._ignored:
            if _matches(pattern.lstrip("!"), path):
                excluded = not pattern.startswith("!")
        return excluded


def _dbt_output(settings: str | None, project: Path) -> set[Path]:
    """Return the folders that dbt writes: compiled code, logs, installed packages."""
    try:
        content = load_values(settings or "")
    except YamlError:
        content = None
    given = content if isinstance(content, dict) else {}
    cleaned = given.get("clean-targets")
    folders = [
        given.get("target-path") or "target",
        given.get("log-path") or "logs",
        given.get("packages-install-path"),
        *(cleaned if isinstance(cleaned, list) else ()),
    ]
    return {Path(os.path.normpath(project / f)) for f in folders if isinstance(f, str) and f != "."}


def _encoding(path: str, content: bytes) -> str:
    """Return the encoding of a file: UTF-8, UTF-16, or the one that a Python file declares."""
    if content.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        return "utf-16"
    if path.endswith(".py"):
        with suppress(SyntaxError):  # an unknown encoding, or bytes that are not UTF-8
            return detect_encoding(io.BytesIO(content).readline)[0]
    return "utf-8-sig"


def _ignore_patterns(root: Path) -> list[str]:
    file = root / ".gitignore"
    if not file.is_file():
        return []
    lines = file.read_text("utf-8", errors="replace").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def _matches(pattern: str, path: Path) -> bool:
    bare = pattern.rstrip("/")
    if "/" in bare:
        return fnmatch(path.as_posix(), bare.lstrip("/"))
    return fnmatch(path.name, bare)


def find_module(files: Container[str], name: str, level: int, folder: PurePosixPath) -> str | None:
    """Return the file of a module that a file in `folder` imports."""
    if level:
        bases = [[folder, *folder.parents][min(level - 1, len(folder.parents))]]
    else:
        bases = [*reversed(folder.parents), folder, PurePosixPath("src")]
    inside = name.replace(".", "/")
    for base in dict.fromkeys(bases):
        for place in (f"{inside}.py", f"{inside}/__init__.py") if inside else ("__init__.py",):
            path = (base / place).as_posix()
            if path in files:
                return path
    return None
