"""The files that differ between two commits of a Git repository, or from its working tree."""

from __future__ import annotations

import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import InvalidRequestError
from downriver.model.unread import Unread, UnreadReason

if TYPE_CHECKING:
    from collections.abc import Iterator

READ = (".sql", ".py", ".ipynb", ".yml", ".yaml")  # the files whose meaning can be compared
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


class CommitTrees(NamedTuple):
    """The folders in which the code of two commits lies."""

    base: Path
    head: Path


class FilePair(NamedTuple):
    """One file before and after; None where there is none."""

    path: str
    base: str | None
    head: str | None

    def is_type(self, *endings: str) -> bool:
        """Tell whether the file has one of these endings, in any case."""
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
    root = folder.joinpath(_git(folder, "rev-parse", "--show-toplevel").strip())
    commits = [_commit(folder, base), *([_commit(folder, head)] if head else [])]
    entries = [entry for entry in _diff(root, commits) if _is_code(entry)]
    if head is None:
        entries += [entry for entry in _untracked(root) if _is_code(entry)]
    texts = _read_blobs(folder, {blob for entry in entries for blob in entry.blobs})
    found = ChangedFiles([], [])
    for entry in sorted(entries):
        _add_entry(entry, texts, None if head else root, found)
    return found


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


def _is_code(entry: _DiffEntry) -> bool:
    path = PurePosixPath(entry.path.lower())
    if path.suffix == ".csv":
        return "seeds" in path.parts[:-1]
    return path.suffix not in _NOT_CODE


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
    """The text of a file; `bad_line` is the first line with bytes that are no text, else 0."""

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
    code = {}
    for line in filter(None, _git(root, "ls-tree", "-r", "-z", commit).split("\0")):
        described, _, path = line.partition("\t")
        mode, _, blob = described.split()
        if mode not in _NO_TEXT and (path.lower().endswith(READ) or path == ".gitignore"):
            code[path] = blob
    blobs = _read_blobs(folder, set(code.values()))
    for path, blob in code.items():
        file = into / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(decode_text(blobs[blob]).text, "utf-8")
    return into


def _commit(folder: Path, name: str) -> str:
    if name.startswith("-"):
        raise InvalidRequestError("--base", f"{name!r} is no commit")
    try:
        return _git(folder, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()
    except InvalidRequestError as exc:
        raise InvalidRequestError("--base", f"{name!r} is no commit of this repository") from exc


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
        said = exc.stderr.decode("utf-8", errors="replace").strip() or "git failed"
        raise InvalidRequestError("--base", said) from exc
    return done.stdout
