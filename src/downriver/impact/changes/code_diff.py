"""Compares what a job writes before and after an edit, by the steps that derive it."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from downriver.capture.sql import normalize_query
from downriver.model.ids import EVERY_FIELD

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from downriver.capture.code import CodeEdge, CodeJob, DerivationStep, OutputShape
    from downriver.model.ids import DatasetId

_LITERAL_OR_LAYOUT = re.compile(
    r"""('(?:[^'\\]|\\.)*(?:'|\Z)|"(?:[^"\\]|\\.)*(?:"|\Z)|`[^`]*`|\$\$.*?\$\$"""
    r"""|/\*\+(?:(?!/\*).)*?\*/)"""
    r"""|--[^\n]*|/\*(?:(?!/\*).)*?\*/|\{\#(?:(?!\{\#).)*?\#\}|\s+""",
    re.DOTALL,
)


def is_same_layout(one: str, other: str) -> bool:
    """Return whether two SQL texts differ in nothing but comments and white space."""
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    parts = _LITERAL_OR_LAYOUT.split(text)
    return " ".join(part for part in parts if part)


_ORDERING = ("orderBy(", "sort(", "sort_values(", "sortWithinPartitions(", "sort_index(")
_FIRST_ROWS = ("limit(", "head(", "first(", "take(", "dropDuplicates(", "drop_duplicates(", "tail(")


class WriteDefinition(NamedTuple):
    """How one job fills one dataset. An `open` dataset also has columns that are not listed."""

    columns: dict[str, str]  # as spelled in the code, by case-folded name
    sources: dict[str, frozenset[tuple[str, ...]]]
    without: frozenset[str]
    open: bool
    steps: tuple[DerivationStep, ...]
    query: str


class DatasetDifference(NamedTuple):
    """The difference of a dataset for its readers: columns, values and rows."""

    lost: list[str]
    renamed: dict[str, str]
    added: list[str]
    changed: list[str]
    rows: bool


def write_definition(job: CodeJob, dataset: DatasetId) -> WriteDefinition:
    """Return how a job fills a dataset."""
    written = [one for one in job.written if one.dataset == dataset]
    edges = [edge for edge in job.edges if edge.target == dataset]
    named = [name for one in written for name in one.columns]
    named += [edge.target_field for edge in edges if edge.target_field != EVERY_FIELD]
    return WriteDefinition(
        columns={name.casefold(): name for name in named},
        sources=_sources(edges),
        without=frozenset().union(*(one.without for one in written)),
        open=_is_open(written, edges),
        steps=tuple(step for one in written for step in _significant_steps(one)),
        query=normalize_query(job.sql) or job.sql,
    )


def _is_open(written: list[OutputShape], edges: list[CodeEdge]) -> bool:
    stars = any(edge.source_field == edge.target_field == EVERY_FIELD for edge in edges)
    return stars or any(one.open for one in written)


def _significant_steps(written: OutputShape) -> Iterable[DerivationStep]:
    """Return the steps without sorting.

    Sorting is kept where the order decides which rows remain.
    """
    cut = any(step.text.startswith(_FIRST_ROWS) for step in written.steps)
    return (step for step in written.steps if cut or not step.text.startswith(_ORDERING))


def _sources(edges: Iterable[CodeEdge]) -> dict[str, frozenset[tuple[str, ...]]]:
    sources: dict[str, set[tuple[str, ...]]] = {}
    for edge in edges:
        if edge.subtype == "SORT":
            continue  # where the order matters, the steps contain it
        origin = (str(edge.source), edge.source_field.casefold(), edge.subtype, edge.expression)
        sources.setdefault(edge.target_field.casefold(), set()).add(origin)
    return {name: frozenset(made) for name, made in sources.items()}


def compare_definitions(base: WriteDefinition, head: WriteDefinition) -> DatasetDifference:
    """Return the difference of the dataset that both jobs write."""
    dropped = [name for name in base.columns if name not in head.columns]
    if head.open and not base.open:
        dropped = [name for name in dropped if name in head.without]
    dropped += sorted(head.without - base.without - base.columns.keys())
    new = [name for name in head.columns if name not in base.columns]
    renamed = {}
    for name in list(dropped):
        heir = _find_renamed_column(name, new, base, head)
        if heir:
            renamed[name] = head.columns[heir]
            dropped.remove(name)
            new.remove(heir)
    kept = [name for name in base.columns if name in head.columns]
    changed = {n for n in kept if base.sources.get(n) != head.sources.get(n)}
    recomputed, rows = _compare_steps(base.steps, head.steps)
    others = base.sources.get(EVERY_FIELD) != head.sources.get(EVERY_FIELD)
    rows = rows or (others and not (dropped or renamed)) or _is_other_query(base, head)
    changed |= {name for name in recomputed if name in kept or (base.open and name not in renamed)}
    changed -= {*dropped, *new}
    return DatasetDifference(
        [base.columns.get(name, name) for name in dropped],
        {base.columns.get(name, name): to for name, to in renamed.items()},
        [head.columns[name] for name in new],
        sorted(base.columns.get(name, name) for name in changed),
        rows,
    )


def _find_renamed_column(
    name: str, new: list[str], base: WriteDefinition, head: WriteDefinition
) -> str:
    """Return the new column that has the same sources as a dropped column."""
    made = base.sources.get(name)
    heirs = [other for other in new if made and head.sources.get(other) == made]
    return heirs[0] if len(heirs) == 1 else ""


def _is_other_query(base: WriteDefinition, head: WriteDefinition) -> bool:
    return base.query != head.query and not (base.steps or head.steps)


def _compare_steps(
    base: tuple[DerivationStep, ...], head: tuple[DerivationStep, ...]
) -> tuple[set[str], bool]:
    """Return the columns that are computed differently, and whether the rows differ."""
    differing = Counter(base)
    differing.subtract(Counter(head))
    steps = [step for step, number in differing.items() if number]
    if not steps and base != head and _sets_twice(head):
        steps = list(head)  # the same steps in another order, and the order matters
    columns = {name.casefold() for step in steps for name in step.columns}
    rows = any(not step.columns for step in steps)
    return _follow_columns(columns, rows, head)


def _sets_twice(steps: tuple[DerivationStep, ...]) -> bool:
    made = Counter(name for step in steps for name in step.columns)
    return any(number > 1 for number in made.values())


def _follow_columns(
    columns: set[str], rows: bool, steps: tuple[DerivationStep, ...]
) -> tuple[set[str], bool]:
    """Follow changed columns through later steps."""
    reached = set(columns)
    for step in steps:
        text = step.text.casefold()
        if any(f"'{name}'" in text for name in reached):
            reached |= {name.casefold() for name in step.columns}
            rows = rows or not step.columns
    return reached, rows


def is_same_work(base: CodeJob, head: CodeJob) -> bool:
    """Return whether two jobs read and write the same in the same way."""
    if set(base.inputs) != set(head.inputs) or set(base.outputs) != set(head.outputs):
        return False
    named = (_named(base), _named(head))
    same_writes = all(
        write_definition(base, one) == write_definition(head, one) for one in base.outputs
    )
    return same_writes and named[0] == named[1]


def _named(job: CodeJob) -> set[tuple[DatasetId, str, bool]]:
    return {(r.dataset, r.field.casefold(), r.conditional) for r in job.references}


def declared_columns(job: CodeJob) -> Mapping[DatasetId, list[str]]:
    """Return the columns that a property file lists, by dataset."""
    columns: dict[DatasetId, list[str]] = {}
    for reference in job.references:
        columns.setdefault(reference.dataset, []).append(reference.field)
    return columns
