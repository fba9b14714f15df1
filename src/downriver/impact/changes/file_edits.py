"""Maps edited files to the jobs of the catalog and to the changes that the edits make."""

from __future__ import annotations

import csv
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import InvalidRequestError
from downriver.impact.changes.code_edits import CodeEdits, compare_code, is_same_file
from downriver.impact.changes.ddl import parse_ddl
from downriver.impact.simulate.bound_script import BoundScript
from downriver.impact.simulate.delta import Delta, DeltaKind, ResolvedChange
from downriver.impact.simulate.job_script import JobScript
from downriver.model.changes import (
    Change,
    ColumnAdd,
    ColumnDrop,
    ColumnRename,
    LogicChange,
    TableDrop,
    TypeChange,
)
from downriver.model.ids import DatasetId, JobId

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.impact.changes.commits import CodeReader, FilePair
    from downriver.impact.simulate.catalog import Process, SimulationCatalog


def compare_seed(pair: FilePair, world: SimulationCatalog) -> Iterator[ResolvedChange]:
    """Yield what an edited seed changes; a new one feeds no one."""
    nodes = world.nodes_named(PurePosixPath(pair.path).stem)
    for node in {world.canonical(n) for n, name in nodes.items() if isinstance(name, DatasetId)}:
        if pair.base is not None:
            known = {column.casefold() for column in world.known_columns(node)}
            for change in _changes(world.dataset(node).id.name, pair, known):
                yield ResolvedChange(change, node)


def _changes(name: str, pair: FilePair, known: set[str]) -> Iterator[Change]:
    if pair.head is None:
        yield TableDrop(dataset=name)
        return
    before, after = _header(pair.base or ""), _header(pair.head)
    gone = [c for c in before if c not in after and (not known or c.casefold() in known)]
    new = [c for c in after if c not in before and c.casefold() not in known]
    if len(gone) == len(new) == 1 and len(before) == len(after):
        yield ColumnRename(dataset=name, column=gone[0], to=new[0])
    else:
        yield from (ColumnDrop(dataset=name, column=column) for column in gone)
        yield from (ColumnAdd(dataset=name, column=column) for column in new)
    if _rows(pair.base or "") != _rows(pair.head):
        yield LogicChange(dataset=name)


def _header(text: str) -> list[str]:
    return next(csv.reader(text.splitlines()), [])


def _rows(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines()[1:] if line.strip()]


class ScriptEdit(NamedTuple):
    """A process's SQL before and after."""

    process: Process
    base: JobScript
    head: JobScript

    def reading(self, world: SimulationCatalog) -> BoundScript:
        """Return what the SQL says before the edit."""
        return BoundScript(self.process._replace(script=self.base), world)


class FileEdits(NamedTuple):
    """What the files of two commits come to: edited processes, and changes stated outright."""

    by_process: dict[int, ScriptEdit]
    changes: list[Change]
    unknown: list[str]
    proposed: list[ResolvedChange]
    rewritten: dict[int, Process]


def find_edits(pairs: Iterable[FilePair], world: SimulationCatalog, read: CodeReader) -> FileEdits:
    """Match files with the jobs whose code they are. What no job is known for, feeds no one.

    SQL is compared query by query; `read` tells what all other code of either commit does.
    """
    code = read(list(pairs))
    found = FileEdits({}, [], [], [], {})
    for pair in code.queries:
        for process in _processes(pair, world):
            _take(pair, process, found)
            break
        else:
            _take_unknown(pair, found)
    for pair in code.seeds:
        found.proposed.extend(compare_seed(pair, world))
    _take_code(compare_code(code.base, code.head, world), found)
    return found


def _take_code(code: CodeEdits, found: FileEdits) -> None:
    for process, base, head in code.queries:
        found.by_process[process.key] = ScriptEdit(process, base, head)
    found.proposed.extend(code.changes)
    found.rewritten.update(code.rewritten)
    found.unknown.extend(code.unknown)


def _take(pair: FilePair, process: Process, found: FileEdits) -> None:
    dialect = process.script.dialect_name if process.script is not None else ""
    dialect = "" if dialect == "dialect" else dialect
    base = JobScript(pair.base or "", dialect or None)
    found.by_process[process.key] = ScriptEdit(
        process._replace(path=pair.path, code=None),
        base,
        JobScript(pair.head or "", dialect or None),
    )


def _take_unknown(pair: FilePair, found: FileEdits) -> None:
    """A file that is no job's code may be a migration; anything else new feeds no one yet."""
    if pair.head is not None and pair.base is None:
        try:
            found.changes.extend(parse_ddl(pair.head))
        except InvalidRequestError as exc:
            if "cannot read" in exc.reason:
                found.unknown.append(f"{pair.path}: {exc.reason}")
    elif pair.base is not None:
        found.unknown.append(f"{pair.path}: no job in the catalog has this code")


def _processes(pair: FilePair, world: SimulationCatalog) -> Iterator[Process]:
    path = PurePosixPath(pair.path)
    candidates = [
        world.process(number)
        for number, node in world.nodes_named(path.stem).items()
        if isinstance(node, JobId)
    ]
    exact = [p for p in candidates if p.path and is_same_file(p.path, pair.path)]
    yield from exact or [p for p in candidates if not p.path]


def changes_from_delta(dataset: str, delta: Delta) -> Iterator[Change]:
    """Return a difference between two states of a dataset as changes people know."""
    if delta.gone is not None:
        yield TableDrop(dataset=dataset)
    changed = []
    for (column, kind), touch in delta.touches.items():
        match kind:
            case DeltaKind.LOST:
                yield ColumnDrop(dataset=dataset, column=column)
            case DeltaKind.RENAMED:
                yield ColumnRename(dataset=dataset, column=column, to=touch.to)
            case DeltaKind.ADDED:
                yield ColumnAdd(dataset=dataset, column=column, data_type=touch.to)
            case DeltaKind.RETYPED:
                yield TypeChange(dataset=dataset, column=column, to=touch.to)
            case _:
                changed.append(column)
    if delta.rows is not None:
        yield LogicChange(dataset=dataset)
    elif changed:
        yield LogicChange(dataset=dataset, columns=sorted(changed))
