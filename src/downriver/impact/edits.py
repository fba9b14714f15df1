"""Edited SQL: which job a file is, and what its edit changes, as changes people know."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import InvalidRequestError
from downriver.impact.ddl import parse_ddl
from downriver.impact.delta import Delta, Kind
from downriver.impact.reading import Reading
from downriver.impact.script import Script
from downriver.model.changes import (
    Change,
    ColumnAdd,
    ColumnDrop,
    ColumnRename,
    LogicChange,
    TableDrop,
    TypeChange,
)
from downriver.model.ids import JobId

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.impact.repository import FilePair
    from downriver.impact.world import Process, World


class Edit(NamedTuple):
    """A process's SQL before and after."""

    process: Process
    base: Script
    head: Script

    def reading(self, world: World) -> Reading:
        """Return what the SQL says before the edit."""
        return Reading(self.process._replace(script=self.base), world)


class Edits(NamedTuple):
    """What the files of two commits come to: edited processes, and changes stated outright."""

    by_process: dict[int, Edit]
    changes: list[Change]
    unknown: list[str]


def find_edits(pairs: Iterable[FilePair], world: World) -> Edits:
    """Match files with the jobs whose code they are. What no job is known for, feeds no one."""
    found = Edits({}, [], [])
    for pair in pairs:
        for process in _processes(pair, world):
            _take(pair, process, found)
            break
        else:
            _take_unknown(pair, found)
    return found


def _take(pair: FilePair, process: Process, found: Edits) -> None:
    dialect = process.script.dialect_name if process.script is not None else ""
    dialect = "" if dialect == "dialect" else dialect
    base = Script(pair.base or "", dialect or None)
    found.by_process[process.key] = Edit(
        process._replace(path=pair.path, code=None), base, Script(pair.head or "", dialect or None)
    )


def _take_unknown(pair: FilePair, found: Edits) -> None:
    """A file that is no job's code may be a migration; anything else new feeds no one yet."""
    if pair.head is not None and pair.base is None:
        try:
            found.changes.extend(parse_ddl(pair.head))
        except InvalidRequestError as exc:
            if "cannot read" in exc.reason:
                found.unknown.append(f"{pair.path}: {exc.reason}")
    elif pair.base is not None:
        found.unknown.append(f"{pair.path}: no job in the catalog has this code")


def _processes(pair: FilePair, world: World) -> Iterator[Process]:
    path = PurePosixPath(pair.path)
    candidates = [
        world.process(number)
        for number, node in world.nodes_named(path.stem).items()
        if isinstance(node, JobId)
    ]
    exact = [p for p in candidates if p.path and _same_file(p.path, pair.path)]
    yield from exact or [p for p in candidates if not p.path]


def _same_file(one: str, other: str) -> bool:
    """Tell whether two paths may be one file, seen from two folders."""
    shorter, longer = sorted(
        (tuple(PurePosixPath(path).parts) for path in (one, other)), key=lambda parts: len(parts)
    )
    return longer[len(longer) - len(shorter) :] == shorter


def describe(dataset: str, delta: Delta) -> Iterator[Change]:
    """Return a difference between two states of a dataset as changes people know."""
    if delta.gone is not None:
        yield TableDrop(dataset=dataset)
    changed = []
    for (column, kind), touch in delta.touches.items():
        match kind:
            case Kind.LOST:
                yield ColumnDrop(dataset=dataset, column=column)
            case Kind.RENAMED:
                yield ColumnRename(dataset=dataset, column=column, to=touch.to)
            case Kind.ADDED:
                yield ColumnAdd(dataset=dataset, column=column, data_type=touch.to)
            case Kind.RETYPED:
                yield TypeChange(dataset=dataset, column=column, to=touch.to)
            case _:
                changed.append(column)
    if delta.rows is not None:
        yield LogicChange(dataset=dataset)
    elif changed:
        yield LogicChange(dataset=dataset, columns=sorted(changed))
