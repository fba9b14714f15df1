"""Data frames as relations of the column algebra."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver.capture.code import CodeEdge, DerivationStep, OutputShape
from downriver.capture.scan.python.interpreter.values import Object, UnknownValue
from downriver.columns import (
    NOTHING,
    Certainty,
    Column,
    DependencyKind,
    Deps,
    Item,
    Relation,
    Star,
    TableName,
    aggregate,
    direct,
    project,
    source,
    union_by_name,
)
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """A data frame. `is_known`: the source of its data is known.

    `aliases` are the frames it was joined from, by the alias in expressions such as `o.id`.
    `steps` are the operations that derive it. The tables of its relation are (namespace, name).
    """

    relation: Relation = msgspec.field(default_factory=lambda: Relation([]))
    library: str = "spark"
    is_known: bool = True
    aliases: dict[str, Frame] = {}
    steps: tuple[DerivationStep, ...] = ()

    def find(self, name: str) -> Deps:
        """Return the dependencies of a column. `o.id` is the `id` of alias `o`, or just `id`."""
        alias, _, rest = name.partition(".")
        if rest and alias.casefold() in self.aliases:
            return self.aliases[alias.casefold()].find(rest)
        bare = name.rpartition(".")[2]
        column = self.relation.known(name) or self.relation.find(bare, Certainty.INFERRED)
        return NOTHING if column is None else column.deps

    def origins(self, name: str) -> list[tuple[DatasetId, str]]:
        """Return the dataset columns of the same name that a column of the frame copies."""
        bare = name.rpartition(".")[2].casefold()
        return sorted(
            (DatasetId(*table), field)
            for table, field, kind, _ in self.find(name)
            if kind == DependencyKind.IDENTITY and field.casefold() == bare
        )

    def select(self, columns: Mapping[str, Deps], stars: Iterable[Star] = ()) -> Frame:
        """Return a frame of other columns over the same rows."""
        items: list[Item] = [Column(name, deps) for name, deps in columns.items()]
        return self._with(project(self.relation, [*items, *stars]))

    def with_column(self, name: str, deps: Deps) -> Frame:
        """Add or replace a column."""
        return self._with(self.relation.with_column(name, deps))

    def without(self, names: Iterable[str]) -> Frame:
        """Drop columns."""
        return self._with(self.relation.without(names))

    def without_part(self, name: str, dropped: Deps) -> Frame:
        """Drop a column of one of the joined frames, but keep columns of the others."""
        left = {key: certainty for key, certainty in self.find(name).items() if key not in dropped}
        tables = {table for table, _, _, _ in dropped}
        items: list[Item] = []
        for item in self.relation.items:
            if isinstance(item, Star):
                items.append(item.without([name]) if item.table in tables else item)
            elif item.name.casefold() != name.casefold():
                items.append(item)
        if left and self.relation.known(name) is not None:
            items.append(Column(name, left))
        return self._with(project(self.relation, items))

    def renamed(self, names: Mapping[str, str]) -> Frame:
        """Rename columns."""
        return self._with(self.relation.renamed_columns(names))

    def aliased(self, alias: str) -> Frame:
        """Return the frame with an alias for expressions."""
        bare = msgspec.structs.replace(self, aliases={})
        return msgspec.structs.replace(self, aliases={**self.aliases, alias.casefold(): bare})

    def with_stars(self, stars: Iterable[Star]) -> Frame:
        """Add all columns of tables whose schemas are unknown."""
        return self._with(project(self.relation, [*self.relation.columns, *stars]))

    def aggregated(self, keys: Deps, columns: Mapping[str, Deps]) -> Frame:
        """Return a frame of aggregates, one row for each group of equal keys."""
        items = [Column(name, deps) for name, deps in columns.items()]
        grouped = used(keys, DependencyKind.GROUP_BY)
        return self._with(aggregate(self.relation, grouped, items))

    def influenced(self, deps: Deps, kind: DependencyKind) -> Frame:
        """Return the frame with rows that also depend on `deps`."""
        return self._with(self.relation.influenced(used(deps, kind), kind))

    def merged(self, other: Frame) -> Frame:
        """Return the columns of both frames. Columns with the same name are one."""
        relation = union_by_name([self.relation, other.relation])
        stars = {(star.table, star.dropped): star for star in relation.stars}
        return msgspec.structs.replace(
            self,
            relation=project(relation, [*relation.columns, *stars.values()]),
            is_known=self.is_known and other.is_known,
            aliases={**self.aliases, **other.aliases},
            steps=tuple(dict.fromkeys([*self.steps, *other.steps])),
        )

    def known_if(self, *values: object) -> Frame:
        """Return the frame, marked as not known if one of these values is not known."""
        if not any(isinstance(value, (UnknownValue, Object)) for value in values):
            return self
        return msgspec.structs.replace(self, is_known=False)

    def _with(self, relation: Relation) -> Frame:
        return msgspec.structs.replace(self, relation=relation)

    def datasets(self) -> list[DatasetId]:
        """Return the datasets that the data comes from."""
        relation = self.relation
        deps = [*(column.deps for column in relation.columns), relation.rows]
        tables = {table for part in deps for table, _, _, _ in part}
        tables |= {star.table for star in relation.stars}
        return sorted(DatasetId(*table) for table in tables)

    def output_shape(self, target: DatasetId) -> OutputShape:
        """Return the columns of a dataset to which the frame is written."""
        names = [column.name for column in self.relation.columns]
        dropped = {name.casefold() for star in self.relation.stars for name in star.dropped}
        return OutputShape(
            dataset=target,
            columns=tuple(names),
            without=frozenset(dropped - {name.casefold() for name in names}),
            open=bool(self.relation.stars) or not self.is_known,
            steps=self.steps,
        )

    def edges(self, target: DatasetId) -> Iterator[CodeEdge]:
        """Yield the column lineage of writing the frame to a dataset."""
        for column in self.relation.columns:
            yield from edges_to(target, column.name, column.deps)
        for star in self.relation.stars:
            yield from edges_to(target, "*", star.column("*").deps)
        yield from edges_to(target, "*", self.relation.rows)


def edges_to(target: DatasetId, field: str, deps: Deps) -> Iterator[CodeEdge]:
    """Yield the column lineage of one column of a dataset."""
    for table, column, kind, _ in deps:
        yield CodeEdge(
            source=DatasetId(*table),
            source_field=column,
            target=target,
            target_field=field,
            subtype=DependencyKind(kind).name,
            confidence="inferred",
        )


UNKNOWN_FRAME = Frame(is_known=False)


def used(deps: Deps, kind: int) -> Deps:
    """Return the dependencies of a value that uses another value in this way.

    Unlike in `indirect`, the last INDIRECT use decides: a filter on a window value is a FILTER.
    """
    if kind < DependencyKind.JOIN:
        return direct(deps, kind)
    return {
        (table, column, kind, False): certainty for (table, column, _, _), certainty in deps.items()
    }


def table_of(dataset: DatasetId) -> TableName:
    """Return a dataset as a table of the column algebra."""
    return (dataset.namespace, dataset.name)


def read_frame(
    dataset: DatasetId, columns_of: Callable[[DatasetId], list[str] | None], library: str
) -> Frame:
    """Return a dataset as a frame, with its columns if they are known."""
    table, names = table_of(dataset), columns_of(dataset)
    items: list[Item] = [Star(table)]
    if names is not None:
        items = [Column(name, source(table, name, Certainty.INFERRED)) for name in names]
    return Frame(relation=Relation(items), library=library)
