"""Data frames as lineage: which columns they have, and what each is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from downriver.capture.code import CodeEdge, DerivationStep, OutputShape
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


class ColumnDependency(NamedTuple):
    """A column of a dataset, and how it is used."""

    dataset: DatasetId
    field: str
    subtype: str


Deps: TypeAlias = frozenset[ColumnDependency]
NOTHING: Deps = frozenset()

_ORDER = ("IDENTITY", "TRANSFORMATION", "AGGREGATION")


def through(deps: Iterable[ColumnDependency], subtype: str) -> Deps:
    """Return what depends on something that has these dependencies, used in this way."""
    return frozenset(dep._replace(subtype=_stronger(dep.subtype, subtype)) for dep in deps)


def _stronger(inner: str, outer: str) -> str:
    """A value that only steers goes on steering; what is computed stays computed."""
    if outer not in _ORDER:
        return outer
    if inner not in _ORDER:
        return inner
    return max(inner, outer, key=_ORDER.index)


class OpenColumns(NamedTuple):
    """All columns of a dataset whose schema is unknown, but those dropped or replaced."""

    dataset: DatasetId
    without: frozenset[str] = frozenset()


class Frame(msgspec.Struct, frozen=True, kw_only=True):
    """A data frame. `is_known` tells whether we know where its data comes from.

    `aliases` are the frames it was joined from, as expressions call them: `o.id`. `steps` tell how
    it came about.
    """

    columns: dict[str, Deps] = {}
    stars: tuple[OpenColumns, ...] = ()
    rows: Deps = NOTHING
    library: str = "spark"
    is_known: bool = True
    aliases: dict[str, Frame] = {}
    steps: tuple[DerivationStep, ...] = ()

    def find(self, name: str) -> Deps:
        """Return what a column is made of; `o.id` is the `id` of what goes by `o`, or just `id`."""
        alias, _, rest = name.partition(".")
        if rest and alias.casefold() in self.aliases:
            return self.aliases[alias.casefold()].find(rest)
        for candidate in dict.fromkeys((name, name.rpartition(".")[2])):
            for known, deps in self.columns.items():
                if known.casefold() == candidate.casefold():
                    return deps
        bare = name.rpartition(".")[2]
        return frozenset(
            ColumnDependency(star.dataset, bare, "IDENTITY")
            for star in self.stars
            if bare.casefold() not in star.without
        )

    def origins(self, name: str) -> list[ColumnDependency]:
        """Return the columns a name means as they are called where the data comes from."""
        bare = name.rpartition(".")[2].casefold()
        return sorted(
            dep
            for dep in self.find(name)
            if dep.subtype == "IDENTITY" and dep.field.casefold() == bare
        )

    def with_column(self, name: str, deps: Deps) -> Frame:
        """Add or replace a column."""
        columns = {k: v for k, v in self.columns.items() if k.casefold() != name.casefold()}
        return self._with({**columns, name: deps}, self._stars_without([name]))

    def without(self, names: Iterable[str]) -> Frame:
        """Drop columns."""
        gone = {name.casefold() for name in names}
        kept = {k: v for k, v in self.columns.items() if k.casefold() not in gone}
        return self._with(kept, self._stars_without(gone))

    def without_part(self, name: str, gone: Deps) -> Frame:
        """Drop a column that one of the joined frames has, and leave those the others have."""
        left = self.find(name) - gone
        datasets = {dep.dataset for dep in gone}
        columns = {k: v for k, v in self.columns.items() if k.casefold() != name.casefold()}
        if left and len(columns) < len(self.columns):
            columns[name] = left
        hidden = frozenset({name.casefold()})
        stars = tuple(
            star._replace(without=star.without | hidden) if star.dataset in datasets else star
            for star in self.stars
        )
        return self._with(columns, stars)

    def called(self, alias: str) -> Frame:
        """Return the frame under a name that expressions may use."""
        bare = msgspec.structs.replace(self, aliases={})
        return msgspec.structs.replace(self, aliases={**self.aliases, alias.casefold(): bare})

    def renamed(self, names: Mapping[str, str]) -> Frame:
        """Rename columns."""
        wanted = {old.casefold(): new for old, new in names.items()}
        columns = {wanted.get(k.casefold(), k): v for k, v in self.columns.items()}
        for old, new in names.items():
            if all(k.casefold() != old.casefold() for k in self.columns):
                found = self.find(old)
                if found:
                    columns[new] = found
        return self._with(columns, self._stars_without(names))

    def only(self, columns: dict[str, Deps], stars: tuple[OpenColumns, ...] = ()) -> Frame:
        """Return a frame of other columns over the same rows."""
        return self._with(columns, stars)

    def steered(self, deps: Iterable[ColumnDependency], subtype: str) -> Frame:
        """Return the frame with rows that depend on more."""
        return msgspec.structs.replace(self, rows=self.rows | through(deps, subtype))

    def either(self, other: Frame) -> Frame:
        """Return the columns of both frames: one on top of the other, or side by side."""
        columns = dict(self.columns)
        for name, deps in other.columns.items():
            columns[name] = columns.get(name, NOTHING) | deps
        return msgspec.structs.replace(
            self,
            columns=columns,
            stars=tuple(dict.fromkeys([*self.stars, *other.stars])),
            rows=self.rows | other.rows,
            is_known=self.is_known and other.is_known,
            aliases={**self.aliases, **other.aliases},
            steps=tuple(dict.fromkeys([*self.steps, *other.steps])),
        )

    def _with(self, columns: dict[str, Deps], stars: tuple[OpenColumns, ...]) -> Frame:
        return msgspec.structs.replace(self, columns=columns, stars=stars)

    def _stars_without(self, names: Iterable[str]) -> tuple[OpenColumns, ...]:
        gone = {name.casefold() for name in names}
        return tuple(star._replace(without=star.without | gone) for star in self.stars)

    def datasets(self) -> list[DatasetId]:
        """Return where its data comes from."""
        found = {dep.dataset for deps in self.columns.values() for dep in deps}
        found |= {star.dataset for star in self.stars} | {dep.dataset for dep in self.rows}
        return sorted(found)

    def written_to(self, target: DatasetId) -> OutputShape:
        """Return the frame as what a dataset is filled with."""
        named = {name.casefold() for name in self.columns}
        hidden = frozenset(name for star in self.stars for name in star.without)
        return OutputShape(
            dataset=target,
            columns=tuple(self.columns),
            without=hidden - named,
            open=bool(self.stars) or not self.is_known,
            steps=self.steps,
        )

    def edges(self, target: DatasetId) -> Iterator[CodeEdge]:
        """Yield the column lineage of writing the frame to a dataset."""
        for name, deps in self.columns.items():
            for dep in deps:
                yield _edge(dep, target, name)
        for star in self.stars:
            yield _edge(ColumnDependency(star.dataset, "*", "IDENTITY"), target, "*")
        for dep in self.rows:
            yield _edge(dep, target, "*")


def _edge(dep: ColumnDependency, target: DatasetId, name: str) -> CodeEdge:
    return CodeEdge(
        source=dep.dataset,
        source_field=dep.field,
        target=target,
        target_field=name,
        subtype=dep.subtype,
        confidence="inferred",
    )


UNKNOWN_FRAME = Frame(is_known=False)


def read_frame(
    dataset: DatasetId, columns_of: Callable[[DatasetId], list[str] | None], library: str
) -> Frame:
    """Return a dataset as a frame: with its columns when they are known."""
    known = columns_of(dataset)
    if known is None:
        return Frame(stars=(OpenColumns(dataset),), library=library)
    columns = {name: frozenset({ColumnDependency(dataset, name, "IDENTITY")}) for name in known}
    return Frame(columns=columns, library=library)
