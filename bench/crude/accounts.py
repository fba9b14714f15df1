"""Compares names with a scan: in lineage, at a blind spot, or silent. See `bench/silence.py`."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from bench.crude.references import HOLE, Reference
from bench.crude.sql import split_name

if TYPE_CHECKING:
    from collections.abc import Iterator

_DEFINITION = re.compile(r"^(?P<indent>[ \t]*)(?:async\s+)?def\s+(?P<name>\w+)", re.MULTILINE)
_MACRO = re.compile(r"\{%-?\s*(?:macro|test|materialization)\s+(\w+)")
_WHOLE_FILE = frozenset(
    {
        "python_syntax",
        "notebook_syntax",
        "yaml_syntax",
        "too_large",
        "too_deep",
        "not_found",
        "file_type",
    }
)
_WHOLE_STATEMENT = frozenset(
    {"unparsed", "too_deep", "too_large", "unreadable", "not_read", "sql_syntax"}
)


DECLARATIONS = frozenset({"yaml source", "yaml model", "yaml seed", "yaml snapshot"})


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """A reference, and what accounts for it: `lineage`, `blind_spot` or `silent`."""

    reference: Reference
    account: str


class Captured:
    """A scan of a folder: names, blind spots and columns by file."""

    def __init__(self, scan: dict[str, Any], texts: dict[str, str]) -> None:
        self.texts = texts
        self.inputs: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self.outputs: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self.used_lines: dict[str, set[int]] = defaultdict(set)
        self.spots: dict[str, list[tuple[int, str, str]]] = defaultdict(list)
        self.unread: set[str] = set()
        self.tasks: dict[tuple[str, bool], set[int]] = defaultdict(set)
        self.declared: set[tuple[str, str]] = set()
        for job in scan["jobs"]:
            self._add_job(job)
        for note in scan["notes"]:
            self.declared |= {_dataset(note["id"]), *map(_dataset, note.get("aliases", []))}
        for problem in scan["problems"]:
            self._add_problem(problem)
        self._everywhere: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for data in self.declared.union(*self.inputs.values(), *self.outputs.values()):
            self._everywhere[re.sub(r"_v\d+$", "", re.split(r"[./]", data[1])[-1])].add(data)
        self._renamed = _renamed(texts)
        self._callers = _callers(texts)
        self._macros = _called_macros(texts)

    def _add_job(self, job: dict[str, Any]) -> None:
        path = job["path"]
        self.inputs[path].update(map(_dataset, job.get("inputs", [])))
        self.outputs[path].update(map(_dataset, job.get("outputs", [])))
        for written, key in ((False, "inputs"), (True, "outputs")):
            if job.get(key):
                self.tasks[path, written].add(job.get("line", 0))
        for edge in job.get("edges", []):
            self.inputs[path].add(_dataset(edge["source"]))
            self.outputs[path].add(_dataset(edge["target"]))
        self.declared.add(("", job["id"]["name"].casefold()))
        if path.endswith((".yml", ".yaml")):
            self.outputs[path].add(("", job["id"]["name"].casefold()))
        for used in job.get("references", []):
            self.used_lines[path].add(used["line"])
        for spot in job.get("spots", []):
            self.spots[path].append((spot.get("line", 0), spot["kind"], spot["message"]))

    def _add_problem(self, problem: dict[str, Any]) -> None:
        if not problem.get("line") or problem["reason"] in _WHOLE_FILE:
            self.unread.add(problem["path"])
        self.spots[problem["path"]].append(
            (problem.get("line", 0), problem["reason"], problem.get("detail", ""))
        )

    @property
    def blind_spots(self) -> int:
        """The number of blind spots and unread files."""
        return sum(map(len, self.spots.values()))

    def account(self, references: list[Reference]) -> Iterator[Outcome]:
        """Yield what accounts for each reference of a file."""
        spare = self._spare(references)
        self._taken: set[tuple[bool, str]] = set()
        for reference in references:
            if self._is_unused_macro(reference):
                continue
            in_lineage = (
                self._in_lineage(reference)
                if reference.name
                else self._takes_spare(reference, spare)
            )
            account = (
                "lineage" if in_lineage else "blind_spot" if self._is_blind(reference) else "silent"
            )
            yield Outcome(reference=reference, account=account)

    # By lineage

    def _in_lineage(self, reference: Reference) -> bool:
        return any(self._is_named(reference, data) for data in self._candidates(reference))

    def _candidates(self, reference: Reference) -> Iterator[tuple[str, str]]:
        if reference.path in self._macros or reference.position in DECLARATIONS:
            last = reference.name.rpartition(".")[2].casefold()
            for name in (last, *map(str.casefold, self._renamed.get(last, ()))):
                yield from self._everywhere.get(name, ())
        for path in [reference.path, *self._calling_files(reference)]:
            yield from self.outputs.get(path, ())
            if not reference.written:
                yield from self.inputs.get(path, ())

    def _is_named(self, reference: Reference, data: tuple[str, str]) -> bool:
        if reference.is_path:
            return _same_path(reference.name, data)
        names = {
            reference.name,
            *self._renamed.get(reference.name.rpartition(".")[2].casefold(), ()),
        }
        by_last = reference.position.endswith("()") or reference.position.startswith("yaml")
        return any(_same_table(name, data[1], by_last=by_last) for name in names)

    def _spare(self, references: list[Reference]) -> dict[bool, int]:
        """Return how many inputs and outputs of a file no name in the file explains."""
        if not references:
            return {}
        named = [r for r in references if r.name]
        counts = {}
        for written, found in ((False, self.inputs), (True, self.outputs)):
            paths = {references[0].path}.union(
                *(self._calling_files(r) for r in references if not r.name)
            )
            datasets = set().union(*(found.get(path, set()) for path in paths))
            counts[written] = sum(
                not any(self._is_named(r, data) for r in named) for data in datasets
            )
        return counts

    def _takes_spare(self, reference: Reference, spare: dict[bool, int]) -> bool:
        # A query may read or write, or both.
        directions = (False, True) if reference.is_query else (reference.written,)
        return any(self._takes(reference, written, spare) for written in directions)

    def _takes(self, reference: Reference, written: bool, spare: dict[bool, int]) -> bool:
        tasks = self.tasks.get((reference.path, written), set())
        lines = self.used_lines.get(reference.path, set()) | tasks
        if reference.path.endswith((".py", ".ipynb")) and any(
            line in lines for line in self._lines_of(reference)
        ):
            return True
        key = (written, reference.expression)
        if reference.expression and key in self._taken:
            return True
        if spare.get(written, 0) > 0:
            spare[written] -= 1
            self._taken.add(key)
            return True
        return False

    def _lines_of(self, reference: Reference) -> Iterator[int]:
        """Yield the lines of a call, and of the functions of the file that build its query."""
        yield from range(reference.start, reference.stop + 1)
        if not reference.is_query:
            return
        called = set(re.findall(r"\b(\w+)\s*\(", reference.expression))
        text = self.texts[reference.path]
        for number in range(1, text.count("\n") + 2) if called else ():
            if self._function_at(reference.path, number) in called:
                yield number

    # By a blind spot

    def _is_blind(self, reference: Reference) -> bool:
        if reference.path in self.unread:
            return True
        if any(_covers(spot, reference) for spot in self.spots.get(reference.path, ())):
            return True
        if reference.path in self._macros and reference.name:
            every = (spot for spots in self.spots.values() for spot in spots)
            return any(_mentions(spot[2], reference.name) for spot in every)
        return self._is_blind_where_called(reference)

    def _is_blind_where_called(self, reference: Reference) -> bool:
        for path, lines in self._calls_of(self._function_of(reference)):
            if any(spot[0] in lines for spot in self.spots.get(path, ())):
                return True
        return False

    def _calls_of(self, function: str) -> Iterator[tuple[str, set[int]]]:
        """Yield the files and lines that call a function, or a function that calls it."""
        waiting, known = [function], {function, ""}
        while waiting:
            for path, lines in self._callers.get(waiting.pop(), {}).items():
                yield path, lines
                around = {self._function_at(path, line) for line in lines} - known
                known |= around
                waiting += around

    # Functions and macros

    def _calling_files(self, reference: Reference) -> set[str]:
        return set(self._callers.get(self._function_of(reference), ()))

    def _function_of(self, reference: Reference) -> str:
        """Return the Python function that contains a reference; empty if there is none."""
        return self._function_at(reference.path, reference.start)

    def _function_at(self, path: str, at: int) -> str:
        if not path.endswith(".py"):
            return ""
        lines = self.texts[path].split("\n")
        indent = _indent(lines[min(at, len(lines)) - 1])
        for line in reversed(lines[: at - 1]):
            defined = _DEFINITION.match(line)
            if defined and len(defined["indent"]) < indent:
                return defined["name"]
        return ""

    def _is_unused_macro(self, reference: Reference) -> bool:
        if not _MACRO.search(self.texts[reference.path]):
            return False
        return not reference.name or reference.path not in self._macros


def _dataset(value: dict[str, str]) -> tuple[str, str]:
    return (value["namespace"].casefold(), value["name"].casefold())


def _covers(spot: tuple[int, str, str], reference: Reference) -> bool:
    line, kind, message = spot
    if reference.name and _mentions(message, reference.name):
        return True
    if kind in _WHOLE_STATEMENT or reference.path.endswith((".py", ".ipynb")):
        return reference.start <= line <= reference.stop
    return line > 0 and abs(line - reference.line) <= 1


def _mentions(message: str, name: str) -> bool:
    last = name.rpartition(".")[2] if "/" not in name else name
    return (
        len(last) > 2
        and re.search(rf"(?<!\w){re.escape(last)}(?!\w)", message, re.IGNORECASE) is not None
    )


def _same_table(name: str, dataset: str, *, by_last: bool) -> bool:
    ours = [part.casefold() for part in split_name(name) if part]
    theirs = [part for part in re.split(r"[./]", dataset.replace('"', "").replace("`", "")) if part]
    if not ours or not theirs:
        return False
    if ours[-1] != theirs[-1]:  # BigQuery: a source may be all tables with a prefix
        theirs[-1] = theirs[-1].removesuffix("_*")
    if by_last:
        return re.sub(r"_v\d+$", "", theirs[-1]) == re.sub(r"_v\d+$", "", ours[-1])
    length = min(len(ours), len(theirs))
    return ours[-length:] == theirs[-length:]


def _same_path(name: str, data: tuple[str, str]) -> bool:
    whole = re.sub(r"^\w+:/+", "", name.casefold())
    partitioned = f"/{data[1]}".endswith(f"/{whole.strip('./')}")
    return partitioned or _same_folder(re.sub(r"/\w+=[^/]*", "", whole), name, data)


def _same_folder(path: str, name: str, data: tuple[str, str]) -> bool:
    bare = path.strip("./").rstrip("*/")
    pieces = [re.escape(piece) for piece in re.split(rf"[{HOLE}*]+", bare)]
    whole = "/".join(data)
    if re.search(rf"(?:^|/){'.*'.join(pieces)}(?:/|$|\.)", whole):
        return True
    topic = re.fullmatch(r"projects/([^/]+)/(?:topic|subscription)s/([^/]+)", bare)
    if topic is not None and data[1].endswith(f":{topic[1]}:{topic[2]}"):
        return True
    folder = data[1].strip("/")
    return f"{bare}/".startswith(f"{folder}/") or _same_table(name, data[1], by_last=False)


def _renamed(texts: dict[str, str]) -> dict[str, set[str]]:
    """Return the aliases of models and the identifiers of sources by their name."""
    found: dict[str, set[str]] = defaultdict(set)
    for path, text in texts.items():
        if path.endswith(".sql"):
            for alias in re.findall(r"\balias\s*=\s*['\"]([^'\"]+)['\"]", text):
                found[Path(path).stem.casefold()].add(alias)
        elif path.endswith((".yml", ".yaml")):
            for name, alias in re.findall(
                r"-\s+name:\s*[\"']?([\w.-]+)[\"']?\s*\n(?:(?!\s*-\s+name:).*\n){0,12}?\s+(?:identifier|alias):\s*[\"']?([\w.-]+)",
                text,
            ):
                found[name.casefold()].add(alias)
    return found


def _callers(texts: dict[str, str]) -> dict[str, dict[str, set[int]]]:
    """Return the files and lines that call each function that a Python file defines."""
    code = {path: text for path, text in texts.items() if path.endswith(".py")}
    defined = {match["name"] for text in code.values() for match in _DEFINITION.finditer(text)}
    found: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for path, text in code.items():
        for line, content in enumerate(text.split("\n"), 1):
            if not _DEFINITION.match(content):
                for called, passed in re.findall(
                    r"\b(\w+)\s*\(|\bpython_callable\s*=\s*(\w+)", content
                ):
                    if (called or passed) in defined:
                        found[called or passed][path].add(line)
    return found


def _called_macros(texts: dict[str, str]) -> set[str]:
    """Return the files with a macro that another file calls."""
    by_name = {name: path for path, text in texts.items() for name in _MACRO.findall(text)}
    return {
        by_name[name]
        for path, text in texts.items()
        if path.endswith((".sql", ".yml"))
        for name in set(re.findall(r"\b(\w+)\s*\(", text))
        if name in by_name and by_name[name] != path
    }


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
