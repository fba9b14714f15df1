"""Counts names in code that a scan loses silently: `python -m bench.silence FOLDER...`.

A crude reader (`bench/crude`: regular expressions, nothing of the product) lists the tables and
paths in I/O positions of every SQL, Python, notebook and YAML file that git tracks in a folder.
Downriver scans the same folder once, as `downriver capture scan FOLDER` does. Each name is then

- *in lineage*: an input, output or column edge of a job of that file has the name. Names compare
  without case and quotes, a shorter name with the last parts of a longer one. A written name needs
  an output. A name that the code computes is in lineage when a job with inputs (or outputs) starts
  in the call, when a column that is used in the call is known, or when a dataset of the file is
  left over that no name in the file explains (one dataset for one such expression).
- *a blind spot*: a blind spot is at the name. A blind spot about a statement that was not read
covers the lines of that statement; any other covers only the call or the lines next to it, or the
names
  in its message. A file is covered as a whole only when it is reported as unread. A call in a
  function is also covered by the lines, of any file, that call this function, directly or not.
- *silent* otherwise.

Names in macros count when another file uses the macro; they are accounted for by any job of the
folder. A source or model that YAML declares counts when a file refers to it or is it; any job or
dataset note of the folder accounts for it.

`--list` shows every silent name, `--json` prints all figures. `KIND=FOLDER` names the kind of a
repository; by default it is guessed from the files. `--scans DIR` keeps the scans for the next run.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console
from rich.progress import Progress

from bench.crude.accounts import DECLARATIONS, Captured, Outcome
from bench.crude.python_calls import find_call_names, find_notebook_names
from bench.crude.references import Reference
from bench.crude.sql import find_sql_names
from bench.crude.yaml_names import find_yaml_names
from bench.report import Table, print_table
from downriver.service import Lineage
from downriver.settings import SCAN_TESTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

SQL_SUFFIXES = frozenset({
    ".sql", ".hql", ".ddl", ".dml", ".pks", ".pkb", ".pkg", ".pls", ".plsql", ".prc", ".fnc",
    ".trg", ".psql", ".tsql", ".bteq", ".sqlx",
})  # fmt: skip
_SKIPPED = frozenset(
    {".git", "node_modules", ".venv", "venv", "__pycache__", "dbt_packages", "target"}
)
_SUMMARY = "Count names in code that a scan loses silently."
MAX_BYTES = 20 * 2**20


class FolderResult(msgspec.Struct, kw_only=True):
    """The outcomes of one folder."""

    folder: str
    kind: str
    commit: str
    files: int
    files_with_names: int
    blind_spots: int
    outcomes: list[Outcome]

    def count(self, account: str) -> int:
        """Return the number of references with this outcome."""
        return sum(outcome.account == account for outcome in self.outcomes)

    @property
    def silent(self) -> list[Reference]:
        """The references without lineage and without a blind spot."""
        return [outcome.reference for outcome in self.outcomes if outcome.account == "silent"]


# Files


def list_files(folder: Path) -> list[str]:
    """Return the tracked files of a folder, or all files if it is not in a repository."""
    command = ["git", "-C", str(folder), "ls-files", "-z"]
    listed = subprocess.run(command, capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        names = listed.stdout.decode("utf-8", errors="replace").split("\0")
        return sorted(name for name in names if name and (folder / name).is_file())
    paths = (path for path in folder.rglob("*") if path.is_file())
    relative = (path.relative_to(folder) for path in paths)
    return sorted(path.as_posix() for path in relative if not _SKIPPED & set(path.parts))


def read_names(path: str, text: str) -> list[Reference]:
    """Return the names in I/O positions of a file. The suffix decides how it is read."""
    suffix = _suffix(path)
    if suffix in SQL_SUFFIXES:
        return find_sql_names(path, text)
    if suffix == ".py":
        return find_call_names(path, text)
    if suffix == ".ipynb":
        return find_notebook_names(path, text)
    if suffix in (".yml", ".yaml"):
        return find_yaml_names(path, text)
    return []


def _suffix(path: str) -> str:
    return Path(re.sub(r"\.(?:j2|jinja2?)$", "", path.lower())).suffix


def _is_read(path: str) -> bool:
    return _suffix(path) in SQL_SUFFIXES | {".py", ".ipynb", ".yml", ".yaml"}


def guess_kind(texts: dict[str, str]) -> str:
    """Return the kind of a repository: the kind of most files with names."""
    if any(path.endswith("dbt_project.yml") for path in texts):
        return "dbt"
    patterns = {
        "SQLMesh": r"^\s*MODEL\s*\(",
        "Glue": r"\bawsglue\b",
        "Beam": r"\bapache_beam\b",
        "Airflow": r"\bairflow\b",
        "PySpark": r"\bpyspark\b",
        "pandas": r"\bimport (?:pandas|polars)\b",
        "stored procedures": r"(?i)\bCREATE\s+(?:OR\s+\w+\s+)?(?:PROC|FUNCTION|PACKAGE)",
        "SQL scripts": r"(?i)\bFROM\b",
    }
    counts = {
        kind: sum(1 for text in texts.values() if re.search(pattern, text, re.MULTILINE))
        for kind, pattern in patterns.items()
    }
    return next((kind for kind, count in counts.items() if count > len(texts) * 0.3), "mixed")


# The measurement


def measure(
    folder: Path,
    kind: str | None = None,
    scans: Path | None = None,
    progress: Callable[[str, int, int], None] = lambda step, done, total: None,
) -> FolderResult:
    """Compare the names in a folder with the lineage that a scan finds."""
    paths = [path for path in list_files(folder) if _is_read(path)]
    texts: dict[str, str] = {}
    names: dict[str, list[Reference]] = {}
    for done, path in enumerate(paths, 1):
        file = folder / path
        if file.stat().st_size <= MAX_BYTES:
            texts[path] = _decode(file.read_bytes())
            names[path] = read_names(path, texts[path])
        progress("names", done, len(paths))
    names = {path: _used(found, names, texts) for path, found in names.items()}
    captured = Captured(_scan(folder, scans, lambda d, t: progress("scan", d, t)), texts)
    outcomes = [outcome for path in paths for outcome in captured.account(names.get(path, []))]
    return FolderResult(
        folder=folder.name,
        kind=kind or guess_kind(texts),
        commit=_commit(folder),
        files=len(paths),
        files_with_names=len({outcome.reference.path for outcome in outcomes}),
        blind_spots=captured.blind_spots,
        outcomes=outcomes,
    )


def _used(
    found: list[Reference], names: dict[str, list[Reference]], texts: dict[str, str]
) -> list[Reference]:
    """Leave out tables that YAML declares but no file refers to, and models without a file."""
    if not any(reference.position in DECLARATIONS for reference in found):
        return found
    referred = {
        reference.name.rpartition(".")[2].casefold()
        for references in names.values()
        for reference in references
        if reference.position in ("ref()", "source()")
    }
    referred |= {Path(path).stem.casefold() for path in texts if path.endswith((".sql", ".py"))}
    return [
        reference
        for reference in found
        if reference.position not in DECLARATIONS
        or reference.name.rpartition(".")[2].casefold() in referred
    ]


def _decode(content: bytes) -> str:
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", errors="replace")
    return content.decode("utf-8-sig", errors="replace").replace("\r\n", "\n")


def _scan(folder: Path, scans: Path | None, progress: Callable[[int, int], None]) -> dict[str, Any]:
    key = re.sub(r"[^\w.-]+", "+", str(folder.resolve())).strip("+")
    kept = None if scans is None else scans / f"{key}.json"
    if kept is not None and kept.exists():
        loaded: dict[str, Any] = msgspec.json.decode(kept.read_bytes())
        return loaded
    os.environ[SCAN_TESTS.name] = "1"  # the crude reader also reads unit tests
    with (
        tempfile.TemporaryDirectory() as temporary,
        Lineage.open(f"{temporary}/store.db") as lineage,
    ):
        found = lineage.capture.scan(folder, progress=progress)
    encoded = msgspec.json.encode(found)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(encoded)
    decoded: dict[str, Any] = msgspec.json.decode(encoded)
    return decoded


def _commit(folder: Path) -> str:
    command = ["git", "-C", str(folder), "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


# The report


def render_tables(results: list[FolderResult]) -> Iterator[Table]:
    """Yield the figures by folder, by kind of repository and by position."""
    headings = ("references", "in lineage", "blind spot", "silent", "silent %")
    by_folder = [
        (f"{r.folder} {r.commit}", r.kind, str(r.files), *_figures(r.outcomes), _per_file([r]))
        for r in results
    ]
    yield Table("By folder", ("folder", "kind", "files", *headings, "blind spots/file"), by_folder)
    kinds = sorted({r.kind for r in results})
    yield Table(
        "By kind of repository",
        ("kind", "folders", "files", *headings, "blind spots/file"),
        [_kind_row(kind, [r for r in results if r.kind == kind]) for kind in kinds]
        + [_kind_row("all", results)],
    )
    positions: dict[str, list[Outcome]] = defaultdict(list)
    for result in results:
        for outcome in result.outcomes:
            positions[outcome.reference.position].append(outcome)
    rows = [(position, *_figures(outcomes)) for position, outcomes in sorted(positions.items())]
    yield Table("By position", ("position", *headings), rows)


def _kind_row(kind: str, results: list[FolderResult]) -> tuple[str, ...]:
    files = sum(r.files for r in results)
    outcomes = [outcome for r in results for outcome in r.outcomes]
    return (kind, str(len(results)), str(files), *_figures(outcomes), _per_file(results))


def _per_file(results: list[FolderResult]) -> str:
    return f"{sum(r.blind_spots for r in results) / max(1, sum(r.files for r in results)):.2f}"


def _figures(outcomes: Iterable[Outcome]) -> tuple[str, ...]:
    counts = Counter(outcome.account for outcome in outcomes)
    total = sum(counts.values())
    silent = counts["silent"]
    share = f"{100 * silent / total:.2f}" if total else "-"
    return (
        f"{total:,}",
        f"{counts['lineage']:,}",
        f"{counts['blind_spot']:,}",
        f"{silent:,}",
        share,
    )


def render_json(results: list[FolderResult]) -> bytes:
    """Return the figures of each folder and its silent names as JSON."""
    return msgspec.json.encode([_as_json(result) for result in results])


def _as_json(result: FolderResult) -> dict[str, Any]:
    return {
        "folder": result.folder,
        "kind": result.kind,
        "commit": result.commit,
        "files": result.files,
        "files_with_names": result.files_with_names,
        "references": len(result.outcomes),
        "in_lineage": result.count("lineage"),
        "blind_spot": result.count("blind_spot"),
        "silent": result.count("silent"),
        "blind_spots": result.blind_spots,
        "silent_names": result.silent,
    }


def run(arguments: list[str]) -> None:
    """Measure the folders of the command line and print the result."""
    parser = argparse.ArgumentParser(prog="python -m bench.silence", description=_SUMMARY)
    parser.add_argument("folders", nargs="+", metavar="[KIND=]FOLDER")
    parser.add_argument("--list", action="store_true", help="show every silent name")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument(
        "--scans", type=Path, metavar="DIR", help="keep the scans in DIR and use those in it"
    )
    chosen = parser.parse_args(arguments)
    with Progress(console=Console(stderr=True)) as bar:
        results = [_measure_with(bar, folder, chosen.scans) for folder in chosen.folders]
    if chosen.json:
        sys.stdout.write(render_json(results).decode() + "\n")
        return
    console = Console(width=max(Console().width, 150), emoji=False, highlight=False)
    if chosen.list:
        for result in results:
            for name in result.silent:
                place = f"{result.folder}/{name.path}:{name.line}"
                text = f"{place}: {name.position} {name.name or '(computed)'}"
                console.print(text, markup=False, soft_wrap=True)
    for table in render_tables(results):
        print_table(table, console)


def _measure_with(bar: Progress, argument: str, scans: Path | None) -> FolderResult:
    kind, _, folder = argument.rpartition("=")
    task = bar.add_task(Path(folder).name, total=None)

    def show(step: str, done: int, total: int) -> None:
        description = f"{Path(folder).name}: {step}"
        bar.update(task, completed=done, total=total, description=description)

    return measure(Path(folder), kind or None, scans, show)


if __name__ == "__main__":
    run(sys.argv[1:])
