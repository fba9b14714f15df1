"""Versions of a dataset: their writers and readers, and the version for a rollback."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import InvalidRequestError
from downriver.model.facts import FacetRole
from downriver.model.ids import DatasetId
from downriver.model.views.versions import (
    DatasetVersion,
    DatasetVersions,
    VersionedDataset,
    VersionReader,
)
from downriver.openlineage.facets.dataset import (
    COMMIT,
    OUTPUT_STATISTICS,
    SCHEMA,
    VERSION,
    CommitFacet,
    parse_assertions,
    parse_commit,
    parse_statistics,
    parse_version,
    schema_columns,
)
from downriver.openlineage.wire import render_time
from downriver.service.govern import parse_moment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from downriver.graph import CatalogSnapshot
    from downriver.service.session import StoreSession
    from downriver.store.catalog.history import FacetVersion, JobRun
    from downriver.store.catalog.run_history import RunFacet

_READERS = 200  # runs listed for one version
_FAILED = ("FAIL", "ABORT")
_DIGITS = 18  # of a numeric version


class VersionApi:
    """The versions of a dataset. Call it to list them."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(
        self,
        entity: str,
        *,
        version: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> DatasetVersions:
        """Return the versions of a dataset, the newest first, or only `version`.

        With `before`, `rollback_to` is the last good version that was written before that time;
        without it, the last good version.
        """
        if limit < 1:
            raise InvalidRequestError("limit", f"{limit} is less than 1")
        until = None if before is None else parse_moment(before, "before")
        with self._session.reading() as view:
            resolved = self._session.resolve(entity, view)
            if not isinstance(resolved.id, DatasetId):
                raise InvalidRequestError("entity", f"{resolved.id} is not a dataset")
            group = view.graph.nodes.identities.group(resolved.node)
            versions = _Versions(view, group).newest_first()
        good = [v for v in versions if v.written_by is not None and not v.suspect]
        rollback = next((v for v in good if until is None or _time(v) < until), None)
        shown = versions if version is None else [v for v in versions if v.version == version]
        if version is not None and not shown:
            known = ", ".join(v.version for v in versions[:10]) or "none"
            raise InvalidRequestError(
                "version", f"{version!r} is unknown; the known versions are: {known}"
            )
        return DatasetVersions(
            dataset=str(resolved.id),
            before=None if until is None else render_time(until),
            versions=shown[:limit],
            rollback_to=None if rollback is None else rollback.version,
            omitted_count=max(len(shown) - limit, 0),
        )


def _time(version: DatasetVersion) -> int:
    return parse_moment(version.at, "at")


class _Write(NamedTuple):
    """A version that a run wrote."""

    version: str
    at: int
    run: JobRun
    commit: CommitFacet
    rows: int | None


class _Versions:
    """Reads the versions of a dataset under all its names."""

    def __init__(self, view: CatalogSnapshot, group: Sequence[int]) -> None:
        self._view = view
        self._group = frozenset(group)
        history = view.reader.run_history
        roles = (FacetRole.INPUT, FacetRole.OUTPUT)
        numbers = {run for _, run in history.runs_with_facet(group, VERSION, roles)}
        self._runs = history.by_numbers(numbers)
        self._facets: defaultdict[int, list[RunFacet]] = defaultdict(list)
        for facet in history.facets(numbers, (VERSION, COMMIT, OUTPUT_STATISTICS)):
            self._facets[facet.run].append(facet)
        named = {run.job for run in self._runs.values()}
        named |= {facet.node for facets in self._facets.values() for facet in facets}
        self._names = view.reader.nodes.by_ids(named)
        self._schemas = [
            schema for node in group for schema in view.reader.history.facet_versions(node, SCHEMA)
        ]
        self._checks = sorted(
            (at, result.assertion)
            for node in group
            for body, at in view.reader.facets.quality(node)
            for result in parse_assertions(body)
            if not result.success
        )

    def newest_first(self) -> list[DatasetVersion]:
        """Return the versions, the newest first."""
        writes: dict[str, _Write] = {}
        for write in sorted(self._writes(), key=lambda write: write.at):
            writes[write.version] = write
        ordered = sorted(writes.values(), key=lambda write: write.at)
        readers = self._readers()
        versions = [
            self._version(write, ordered[at - 1] if at else None, ordered[at + 1 :], readers)
            for at, write in enumerate(ordered)
        ]
        versions += [_only_read(name, by) for name, by in readers.items() if name not in writes]
        return sorted(versions, key=lambda version: version.at, reverse=True)

    def _writes(self) -> Iterable[_Write]:
        for number, run in self._runs.items():
            mine = [
                facet
                for facet in self._facets[number]
                if facet.node in self._group and facet.role is FacetRole.OUTPUT
            ]
            for facet in mine:
                if facet.name == VERSION:
                    yield self._write(facet, mine, run)

    def _write(self, version: RunFacet, facets: list[RunFacet], run: JobRun) -> _Write:
        """Return a version with the facets of its event: a run may write several versions."""
        name = parse_version(version.body)
        siblings = [f for f in facets if f.first_event == version.first_event] or facets
        counts = [f.body for f in siblings if f.name == OUTPUT_STATISTICS]
        rows = parse_statistics(counts[-1]).rowCount if counts else None
        return _Write(
            name,
            version.first_at,
            run,
            _commit_of(name, facets),
            None if rows is None else int(rows),
        )

    def _readers(self) -> dict[str, list[VersionReader]]:
        version_readers: dict[str, list[VersionReader]] = {}
        for number, run in self._runs.items():
            facets = self._facets[number]
            inputs = [
                parse_version(f.body)
                for f in facets
                if f.name == VERSION and f.role is FacetRole.INPUT and f.node in self._group
            ]
            if inputs:
                # Use the last one: a run sends its inputs again when it ends.
                version_readers.setdefault(inputs[-1], []).append(self._reader(run, facets))
        for readers in version_readers.values():
            readers.sort(key=lambda reader: (reader.at, reader.run), reverse=True)
            del readers[_READERS:]
        return version_readers

    def _reader(self, run: JobRun, facets: list[RunFacet]) -> VersionReader:
        outputs = []
        by_node: defaultdict[int, list[RunFacet]] = defaultdict(list)
        for facet in facets:
            if facet.role is FacetRole.OUTPUT:
                by_node[facet.node].append(facet)
        for node, written in by_node.items():
            for version in sorted({parse_version(f.body) for f in written if f.name == VERSION}):
                labels = _commit_of(version, written).labels
                name = str(self._names[node])
                outputs.append(VersionedDataset(dataset=name, version=version, labels=labels))
        known = {output.dataset for output in outputs}
        others = map(str, self._view.reader.nodes.outputs_of(run.job))
        outputs += [
            VersionedDataset(dataset=name, version=None) for name in others if name not in known
        ]
        return VersionReader(
            job=str(self._names[run.job]),
            run=run.run,
            at=render_time(run.began_at),
            state=run.state.name,
            outputs=outputs,
        )

    def _version(
        self,
        write: _Write,
        previous: _Write | None,
        later: list[_Write],
        readers: dict[str, list[VersionReader]],
    ) -> DatasetVersion:
        new = self._columns_at(write.at)
        old = self._columns_at(previous.at) if previous is not None else new
        return DatasetVersion(
            version=write.version,
            at=render_time(write.at),
            written_by=str(self._names[write.run.job]),
            run=write.run.run,
            state=write.run.state.name,
            operation=write.commit.operation,
            user=write.commit.user,
            rows=write.rows,
            labels=write.commit.labels,
            columns_added=[name for name in new if name not in old],
            columns_removed=[name for name in old if name not in new],
            columns_retyped=[name for name in new if name in old and old[name] != new[name]],
            columns_changed=_changed(write.commit, previous),
            read_by=readers.get(write.version, []),
            suspect=list(self._reasons(write, later)),
        )

    def _reasons(self, write: _Write, later: list[_Write]) -> Iterable[str]:
        """Yield the reasons why a version is not good: its run, checks, and rollbacks."""
        if write.run.state.name in _FAILED:
            yield f"the run that wrote it ended with {write.run.state.name}"
        end = later[0].at if later else None
        for at, assertion in self._checks:
            if at >= write.at and (end is None or at < end):
                yield f"check {assertion} failed"
        for rollback in later:
            restored = rollback.commit.restores
            if restored and _is_between(restored, write.version, rollback.version):
                yield f"version {rollback.version} rolled it back to {restored}"

    def _columns_at(self, at: int) -> dict[str, str]:
        """Return the columns at a moment: a schema may come back after another one."""
        seen = [schema for schema in self._schemas if schema.span.first.at <= at]
        if not seen:
            return {}
        current = max(seen, key=lambda schema: (_age_at(schema, at), schema.digest))
        return {column.path: column.type for column in schema_columns(current.body)}


def _age_at(schema: FacetVersion, at: int) -> int:
    return schema.span.last.at if schema.span.last.at <= at else schema.span.first.at


def _commit_of(version: str, facets: list[RunFacet]) -> CommitFacet:
    """Return the last statement about a version: its labels may change later."""
    commits = [parse_commit(facet.body) for facet in facets if facet.name == COMMIT]
    return next((c for c in reversed(commits) if c.version == version), CommitFacet())


def _changed(commit: CommitFacet, previous: _Write | None) -> list[str]:
    """Return the columns whose values differ from those of the previous version."""
    before = {} if previous is None else previous.commit.fingerprints
    return [
        name
        for name, fingerprint in commit.fingerprints.items()
        if name in before and before[name] != fingerprint
    ]


def _is_between(restored: str, version: str, rollback: str) -> bool:
    """Return whether a version is after the one that a rollback restored. Both are numbers."""
    if not all(text.isdecimal() and len(text) <= _DIGITS for text in (restored, version, rollback)):
        return False
    return int(restored) < int(version) < int(rollback)


def _only_read(version: str, readers: list[VersionReader]) -> DatasetVersion:
    """Return a version that is only known from runs that read it."""
    return DatasetVersion(
        version=version,
        at=min(reader.at for reader in readers),
        written_by=None,
        run=None,
        state=None,
        operation="",
        user="",
        rows=None,
        labels=[],
        columns_added=[],
        columns_removed=[],
        columns_retyped=[],
        columns_changed=[],
        read_by=readers,
        suspect=[],
    )
