"""The files that differ between two commits of a Git repository, or from its working tree."""

from __future__ import annotations

import getpass
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.code import SourceRevision, find_revision
from downriver.capture.scan import LANGUAGE_SUFFIXES, SUFFIXES
from downriver.errors import InvalidRequestError
from downriver.impact.changes.data_files import find_data_files, unread_data
from downriver.impact.changes.dbt.build_output import (
    DBT_PROJECT,
    copy_packages,
    find_artifact_folders,
    is_artifact,
    is_in_folders,
    list_build_folders,
    list_seed_folders,
)
from downriver.model.unread import Unread, UnreadReason
from downriver.model.verdicts import ComparedCommits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.model.verdicts import StoredCommit

READ = tuple(SUFFIXES)  # files that are compared
_SEED = ".csv"
# Files in the copy of a commit. Code in languages that are not read may still use a table.
_COPIED = (*READ, *LANGUAGE_SUFFIXES, _SEED, "dataform.json")
_LARGEST = 2 * 2**20  # characters of code that is compared
_SYMLINK, _SUBMODULE, _ABSENT = "120000", "160000", "000000"
# Prose, pictures, archives and data: nothing in them is run.
_NOT_CODE = frozenset(
    {
        ".md", ".markdown", ".rst", ".adoc", ".txt", ".html", ".htm", ".css", ".scss", ".svg",
        ".png", ".jpg", ".jpeg", ".gif", ".ico", ".webp", ".pdf", ".woff", ".woff2", ".ttf", ".eot",
        ".mp3", ".mp4", ".zip", ".gz", ".tar", ".tgz", ".bz2", ".xz", ".7z", ".whl", ".jar",
        ".parquet", ".avro", ".orc", ".arrow", ".feather", ".pkl", ".npy", ".npz", ".lock", ".log",
        ".pyc", ".so", ".dll", ".class", ".map", ".po", ".mo", ".jsonl", ".ndjson", ".tsv",
    }
)  # fmt: skip

_PROSE = frozenset(
    {
        "authors", "changelog", "changes", "codeowners", "contributing", "contributors", "copying",
        "copyright", "history", "license", "licence", "maintainers", "news", "notice", "readme",
        "security", "todo", "version", ".gitignore", ".gitattributes", ".editorconfig",
    }
)  # fmt: skip


class CommitTrees(NamedTuple):
    """The folders with the code of two commits, and the ids of the commits.

    `revision` is the repository with the base commit; an empty `head_commit` is the working tree.
    """

    base: Path
    head: Path
    root: Path | None = None
    revision: SourceRevision | None = None
    head_commit: str = ""


class FilePair(NamedTuple):
    """One file before and after; None where there is none."""

    path: str
    base: str | None
    head: str | None

    def is_type(self, *endings: str) -> bool:
        """Return whether the file has one of these endings, in any case."""
        return self.path.lower().endswith(endings)


class ChangedFiles(NamedTuple):
    """The files that differ, and those of them that have no text to compare."""

    pairs: list[FilePair]
    unread: list[Unread]


class _DiffEntry(NamedTuple):
    path: str
    modes: tuple[str, str]  # before and after
    blobs: tuple[str, str]


def list_changed_files(folder: Path, base: str, head: str | None) -> ChangedFiles:
    """Return the files that differ between two commits; without `head`, the working tree's."""
    root = find_root(folder)
    commits = [_commit(folder, base), *([_commit(folder, head)] if head else [])]
    entries = list(_diff(root, commits))
    if head is None:
        entries += _untracked(root)
    builds = _build_folders(root, commits)
    seeds = _seed_folders(root, commits)
    entries = [entry for entry in entries if not is_in_folders(entry.path, builds)]
    data = find_data_files(root, commits[0], (e.path for e in entries if not _is_code(e, seeds)))
    found = ChangedFiles([], [unread_data(path) for path in data if not path.endswith(_SEED)])
    entries = [e for e in entries if _is_code(e, seeds) or (e.path in data and _is_seed(e.path))]
    texts = _read_blobs(folder, {blob for entry in entries for blob in entry.blobs})
    for entry in sorted(entries):
        _add_entry(entry, texts, None if head else root, found)
    return found._replace(pairs=_with_moved_seeds(found.pairs))


def _with_moved_seeds(pairs: list[FilePair]) -> list[FilePair]:
    """Make one pair of a seed that was moved to another folder: its table has the file's name."""
    seeds = [pair for pair in pairs if pair.is_type(_SEED)]
    removed = {PurePosixPath(p.path).name: p for p in seeds if p.head is None}
    added = {PurePosixPath(p.path).name: p for p in seeds if p.base is None}
    moved = removed.keys() & added.keys()
    if not moved:
        return pairs
    moved_paths = {removed[name].path for name in moved}
    new = {added[name].path: removed[name].base for name in moved}
    return [
        pair._replace(base=new.get(pair.path, pair.base))
        for pair in pairs
        if pair.path not in moved_paths
    ]


def _diff(root: Path, commits: list[str]) -> Iterator[_DiffEntry]:
    raw = _git(root, "diff", "--raw", "--no-renames", "--no-abbrev", "-z", *commits)
    parts = raw.split("\0")
    for at in range(0, len(parts) - 1, 2):
        before, after, old, new, _ = parts[at].lstrip(":").split()
        yield _DiffEntry(parts[at + 1], (before, after), (old, new))


def _untracked(root: Path) -> Iterator[_DiffEntry]:
    listed = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    for path in filter(None, listed.split("\0")):
        mode = _SYMLINK if (root / path).is_symlink() else "100644"
        yield _DiffEntry(path, (_ABSENT, mode), ("", ""))


def _is_code(entry: _DiffEntry, seeds: Sequence[str]) -> bool:
    path = PurePosixPath(entry.path.lower())
    if path.suffix == _SEED:
        return "seeds" in path.parts[:-1] or is_in_folders(entry.path, seeds)
    return path.suffix not in _NOT_CODE and path.name not in _PROSE


def _add_entry(
    entry: _DiffEntry, blobs: dict[str, bytes], working: Path | None, found: ChangedFiles
) -> None:
    """Add a file with its texts, or the reason why it has none."""
    links = [mode for mode in entry.modes if mode in _NO_TEXT]
    if links:
        reason = _NO_TEXT[links[-1]]
        found.unread.append(Unread(path=entry.path, line=0, reason=reason))
        return
    before = blobs.get(entry.blobs[0]) if entry.modes[0] != _ABSENT else None
    after = None
    if entry.modes[1] != _ABSENT:
        after = blobs.get(entry.blobs[1]) if working is None else _working(working / entry.path)
    for mode, data, reason in (
        (entry.modes[0], before, UnreadReason.BASE_UNREAD),
        (entry.modes[1], after, UnreadReason.NOT_FOUND),
    ):
        if mode != _ABSENT and data is None:
            detail = "this clone does not have the content of the file"
            found.unread.append(Unread(path=entry.path, line=0, reason=reason, detail=detail))
            return
    if is_artifact(before or after or b""):
        return
    is_read = entry.path.lower().endswith(READ)
    if not is_read and any(b"\0" in data for data in (before, after) if data is not None):
        return  # a binary file
    base, head = (None if data is None else decode_text(data) for data in (before, after))
    reasons = [_why_unread(text, is_read) for text in (base, head)]
    if head is not None and reasons[1] is not None:
        unread = Unread(path=entry.path, line=head.bad_line, reason=reasons[1])
        found.unread.append(unread)
    elif reasons[0] is not None:
        found.unread.append(Unread(path=entry.path, line=0, reason=UnreadReason.BASE_UNREAD))
    if UnreadReason.TOO_LARGE not in reasons:
        texts = (None if text is None else text.text for text in (base, head))
        found.pairs.append(FilePair(entry.path, *texts))


_NO_TEXT = {_SYMLINK: UnreadReason.SYMLINK, _SUBMODULE: UnreadReason.SUBMODULE}


class DecodedText(NamedTuple):
    """The text of a file. `bad_line` is the first line that does not decode, or 0."""

    text: str
    bad_line: int


def decode_text(data: bytes) -> DecodedText:
    """Decode UTF-8, or UTF-16 with a byte order mark; other bytes are replaced and reported."""
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        return DecodedText(data.decode(encoding), 0)
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        return DecodedText(data.decode(encoding, errors="replace"), line)


def _why_unread(text: DecodedText | None, is_read: bool) -> UnreadReason | None:
    if text is None:
        return None
    if text.bad_line or (is_read and "\0" in text.text):
        return UnreadReason.ENCODING
    if is_read and len(text.text) > _LARGEST:
        return UnreadReason.TOO_LARGE
    return None


@contextmanager
def open_trees(folder: Path, base: str, head: str | None) -> Iterator[CommitTrees]:
    """Write the code of two commits into two folders.

    Without `head`, the second is the working tree.
    """
    root = find_root(folder)
    commits = [_commit(folder, base), *([_commit(folder, head)] if head else [])]
    builds = _build_folders(root, commits)
    with tempfile.TemporaryDirectory(prefix="downriver-") as place:
        before, after = Path(place) / "base", Path(place) / "head"
        _lay_out(_files_of(root, commits[0]), builds, before)
        _lay_out(_files_of(root, commits[1]) if head else _working_files(root), builds, after)
        for project in _projects(root):
            copy_packages(root, project, (before, after))
        revision = find_revision(root)
        yield CommitTrees(
            before,
            after,
            root,
            SourceRevision(revision.repository, commits[0]) if revision is not None else None,
            commits[1] if head else "",
        )


class Commit(NamedTuple):
    """A commit that has a parent."""

    id: str
    date: str
    subject: str


def list_commits(folder: Path, last: int, paths: Sequence[str] = ()) -> list[Commit]:
    """Return the newest commits that edit code, without merges, the newest first."""
    find_root(folder)  # raises an error if the folder is in no repository
    chosen = paths or [f"*{ending}" for ending in (*READ, _SEED)]
    listed = _git(
        folder, "log", "--no-merges", "--min-parents=1", f"--max-count={last}",
        "--format=%H%x09%cs%x09%s", "--", *chosen,
    )  # fmt: skip
    return [Commit(*line.split("\t", 2)) for line in listed.splitlines()]


def find_author(folder: Path) -> str:
    """Return the author of work in a folder: Git's user, else the user of the system."""
    try:
        return _git(folder, "config", "user.email").strip()
    except InvalidRequestError:
        return getpass.getuser()


def find_root(folder: Path) -> Path:
    """Return the top folder of the Git repository that a folder is in."""
    folder = folder.absolute()
    if not folder.is_dir():
        raise InvalidRequestError("--repo", f"{folder}: no such folder")
    try:
        return folder.joinpath(_git(folder, "rev-parse", "--show-toplevel").strip())
    except InvalidRequestError as exc:
        if any((parent / ".git").exists() for parent in (folder, *folder.parents)):
            raise
        reason = f"{folder} is not in a Git repository; name one with --repo"
        raise InvalidRequestError("--repo", reason) from exc


def _files_of(root: Path, commit: str) -> dict[str, bytes]:
    """Return the files of a commit that are read, by path."""
    code = {}
    for line in filter(None, _git(root, "ls-tree", "-r", "-z", commit).split("\0")):
        described, _, path = line.partition("\t")
        mode, _, blob = described.split()
        if mode not in _NO_TEXT and path.lower().endswith(_COPIED):
            code[path] = blob
    blobs = _read_blobs(root, {blob for path, blob in code.items() if not _is_seed(path)})
    return {
        path: blobs.get(blob, b"") for path, blob in code.items() if blob in blobs or _is_seed(path)
    }


def _is_seed(path: str) -> bool:
    """Return whether a file may be a dbt seed. Only the name of a seed is needed."""
    return path.lower().endswith(_SEED)


def _working_files(root: Path) -> dict[str, bytes]:
    """Return the files of the working tree that Git tracks or would add, by path."""
    listed = _git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    texts = {
        path: b"" if _is_seed(path) else _working(root / path)
        for path in dict.fromkeys(filter(None, listed.split("\0")))
        if path.lower().endswith(_COPIED)
        and (root / path).is_file()
        and not (root / path).is_symlink()
    }
    return {path: data for path, data in texts.items() if data is not None}


def _lay_out(files: dict[str, bytes], builds: Sequence[str], into: Path) -> None:
    """Write code into a separate folder, without the build output of dbt."""
    into.mkdir()
    for path, data in files.items():
        if not is_in_folders(path, builds):
            file = into / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)


def _project_files(root: Path, commits: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield path and text of the project files of some commits, and of the working tree."""
    for commit in commits:
        listed = _git(root, "ls-tree", "-r", "-z", "--name-only", commit).split("\0")
        for path in listed:
            if PurePosixPath(path).name == DBT_PROJECT:
                yield path, _git(root, "show", f"{commit}:{path}")
    for path in _projects(root):
        yield path, decode_text(_working(root / path) or b"").text


def _seed_folders(root: Path, commits: Sequence[str]) -> list[str]:
    projects = _project_files(root, commits)
    return sorted({folder for path, text in projects for folder in list_seed_folders(path, text)})


def _build_folders(root: Path, commits: Sequence[str]) -> list[str]:
    """Return the folders into which dbt writes, as the projects of either commit name them."""
    projects = _project_files(root, commits)
    found = {folder for path, text in projects for folder in list_build_folders(path, text)}
    untracked = _git(root, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    return sorted(found | find_artifact_folders(untracked))


def _projects(root: Path) -> list[str]:
    listed = _git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z", DBT_PROJECT,
                  f"**/{DBT_PROJECT}")  # fmt: skip
    return [path for path in listed.split("\0") if path]


def relate_commits(trees: CommitTrees, stored: str) -> ComparedCommits | None:
    """Return the compared commits, and how the commit that a store has relates to them."""
    if trees.root is None or trees.revision is None:
        return None
    base = trees.revision.commit
    relation, behind = _relation(trees.root, stored, base, trees.head_commit)
    return ComparedCommits(
        base=base, head=trees.head_commit, stored=stored, stored_is=relation, behind=behind
    )


def _relation(root: Path, stored: str, base: str, head: str) -> tuple[StoredCommit, int]:
    if not stored:
        return "none", 0
    if stored == base:
        return "base", 0
    if stored == (head or _commit(root, "HEAD")):
        return "head", 0
    try:
        lacks = int(_git(root, "rev-list", "--count", f"{stored}..{base}"))
        adds = int(_git(root, "rev-list", "--count", f"{base}..{stored}"))
    except InvalidRequestError:
        return "unrelated", 0  # a commit that this clone does not have
    if lacks and adds:
        return "unrelated", lacks
    return ("older", lacks) if lacks else ("newer", 0)


def _commit(folder: Path, name: str) -> str:
    if name.startswith("-"):
        raise InvalidRequestError("--base", f"{name!r} is not a commit")
    try:
        return _git(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()
    except InvalidRequestError as exc:
        raise InvalidRequestError("--base", f"{name!r} is not a commit of this repository") from exc


def _working(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None


def _read_blobs(folder: Path, blobs: set[str]) -> dict[str, bytes]:
    """Return objects by their ids: all of them by one process."""
    asked = sorted(blob for blob in blobs if blob.strip("0"))
    answer = _run(folder, ["cat-file", "--batch"], "".join(f"{b}\n" for b in asked).encode())
    found: dict[str, bytes] = {}
    at = 0
    for blob in asked:
        end = answer.index(b"\n", at)
        header = answer[at:end].split()
        at = end + 1
        if len(header) == 3 and header[1] == b"blob":
            size = int(header[2])
            found[blob] = answer[at : at + size]
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
        message = exc.stderr.decode("utf-8", errors="replace").strip() or "git failed"
        raise InvalidRequestError("--base", message) from exc
    return done.stdout
