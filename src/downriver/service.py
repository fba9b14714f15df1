"""`Lineage`: the one façade every surface calls."""

from __future__ import annotations

import hashlib
import threading
import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from downriver import settings
from downriver.capture.dbt import DbtCapture, capture_dbt, read_artifacts, relation_names
from downriver.capture.scan import (
    Names,
    Registration,
    Repository,
    ScanResult,
    scan_repository,
)
from downriver.capture.sql import SqlLineage, parse_sql_lineage
from downriver.capture.sql.events import SqlJob, render_sql_event
from downriver.errors import (
    EntityNotFoundError,
    InvalidEventError,
    InvalidRequestError,
)
from downriver.events.waivers import render_waiver_event
from downriver.events.wire import parse_event, parse_time, render_time
from downriver.graph import FOREVER, Entity, GraphIndex, Question, paths, trace
from downriver.graph.assets import Assets, build_tree, find_asset, resolve_any
from downriver.graph.catalog_names import CatalogNames
from downriver.graph.dbt_names import DbtNames
from downriver.graph.registering import Registrar, answer
from downriver.impact import (
    Proposed,
    World,
    analyse,
    decide,
    find_edits,
    read_texts,
    read_trees,
    write_fix,
)
from downriver.model.answers import BlindSpot, Direction, Paths, Trace
from downriver.model.assets import AssetTree, RegisteredAsset
from downriver.model.changes import Change, with_dataset
from downriver.model.ids import ColumnId, DatasetId, JobId
from downriver.store import (
    ApiKey,
    Counts,
    GroupCommit,
    KeyRole,
    Reader,
    Store,
    Verification,
    key_digest,
    open_store,
    parse_role,
    verify_chain,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from pathlib import Path
    from types import TracebackType

    from downriver.events import Event
    from downriver.impact import FilePair, Fix, Policy, Trees
    from downriver.model.verdicts import Impact, Verdict
    from downriver.store import Receipt, StoreState

DEFAULT_LIMIT = 1000
DEFAULT_NAMESPACE = "default"
DBT_NAMESPACE = "dbt"
_BATCH = 500  # events written at once


class Status(msgspec.Struct, kw_only=True):
    """What a store holds and where it stands."""

    store: str
    counts: Counts
    head: int
    last_received: str | None


class SqlCapture(msgspec.Struct, kw_only=True):
    """What was read from a script, and whether it was registered under a job."""

    job: str
    lineage: SqlLineage
    registered: bool


class Lineage:
    """Everything Downriver can do with one store. Safe to share between threads."""

    def __init__(self, store: Store, repository: Repository | None = None) -> None:
        self.store = store
        self.repository = repository  # whose code registered assets are found in
        self._graph = GraphIndex(store)
        self._writer: GroupCommit | None = None
        self._starting_writer = threading.Lock()
        self._world: tuple[StoreState, World] | None = None

    @classmethod
    def open(
        cls,
        location: str | None = None,
        *,
        create: bool = True,
        repository: Path | None = None,
    ) -> Lineage:
        """Open the store at `location`, else DOWNRIVER_STORE, else the nearest `.downriver/`.

        The code of registered assets is found in `repository`, and nowhere else.
        """
        code = None if repository is None else Repository(repository)
        return cls(open_store(location, create=create), code)

    def __enter__(self) -> Lineage:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Write what is waiting and release the store."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self.store.close()

    # In

    def ingest(self, events: Sequence[bytes | Event]) -> list[Receipt]:
        """Store events, all or none; they are on disk when this returns."""
        parsed = [parse_event(e) if isinstance(e, bytes) else e for e in events]
        return self.store.append(parsed)

    def submit(self, events: list[Event]) -> list[Future[Receipt]]:
        """Queue events for the group commit; a future resolves once its event is on disk."""
        with self._starting_writer:
            if self._writer is None:
                capacity = settings.read_number(settings.QUEUE_MB) * 2**20
                self._writer = GroupCommit(self.store, capacity)
        return self._writer.submit(events)

    def capture_sql(
        self,
        sql: str,
        *,
        dialect: str | None = None,
        schema: Mapping[str, Sequence[str]] | None = None,
        job: str | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        description: str = "",
        path: str = "",
        ran: bool = False,
        dry_run: bool = False,
    ) -> SqlCapture:
        """Read lineage from SQL and register it, as declared or, with `ran`, as seen to happen.

        The catalog tells the schemas of tables that `schema` does not.
        """
        with self.reading() as reader:
            names = CatalogNames(reader, self._graph.nodes.identities, namespace)

            def columns_of(table: str) -> Sequence[str] | None:
                given = (schema or {}).get(table)
                return names.columns_of(table) if given is None else given

            found = parse_sql_lineage(sql, dialect=dialect, schema=columns_of)
            job_id = JobId(namespace, job or _job_name(found, sql))
            event = render_sql_event(
                found,
                SqlJob(job_id, sql, description, path),
                _now(),
                names.dataset_for,
                run=str(uuid.uuid4()) if ran else None,
            )
        registered = not dry_run and bool(found.inputs or found.outputs)
        if registered:
            self.ingest([event])
        return SqlCapture(job=str(job_id), lineage=found, registered=registered)

    def capture_dbt(
        self,
        target: Path,
        *,
        namespace: str | None = None,
        job_namespace: str = DBT_NAMESPACE,
        project_dir: Path | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> DbtCapture:
        """Read what dbt left in a target directory and register it.

        Without a namespace, tables go where the catalog knows tables of these names.
        """
        artifacts = read_artifacts(target)
        found = capture_dbt(
            artifacts,
            namespace=namespace or self._known_namespace(relation_names(artifacts)),
            job_namespace=job_namespace,
            project_dir=project_dir,
            now=_now(),
            progress=progress,
        )
        if not dry_run:
            self._ingest_many(found.events)
        return found

    def capture_scan(
        self,
        path: Path,
        *,
        dialect: str | None = None,
        namespace: str = DEFAULT_NAMESPACE,
        dry_run: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> ScanResult:
        """Read a repository without running it, and register what its code says it does."""
        repository = Repository(path)
        with self.reading() as reader:
            names = self._names(reader, namespace, repository)
            names = msgspec.structs.replace(names, dialect=dialect)
            found = scan_repository(repository, names, progress=progress)
        if not dry_run:
            self._ingest_many(list(found.events(_now())))
        return found

    def register_asset(
        self,
        asset_type: str,
        name: str,
        *,
        source_ref: str = "",
        upstream_assets: Sequence[str] = (),
        source: str | None = None,
        namespace: str = DEFAULT_NAMESPACE,
    ) -> RegisteredAsset:
        """Register a dataset or job by hand; what its code reads and writes is found there.

        The code is `source`, or the file that `source_ref` names in the repository, if there is
        one.
        """
        with self.reading() as reader:
            identities = self._graph.nodes.identities
            names = self._names(reader, namespace)
            registrar = Registrar(reader, identities, names, self.repository)
            asset = Registration(
                asset_type=asset_type,
                name=name,
                source_ref=source_ref,
                upstream=registrar.upstream(upstream_assets),
                source=source,
            )
            done = registrar.register(asset, _now())
        self.ingest(done.events)
        with self.reading() as reader:
            return answer(done, Assets(reader, self._graph.nodes.identities))

    def _names(self, reader: Reader, namespace: str, repository: Repository | None = None) -> Names:
        known = CatalogNames(reader, self._graph.nodes.identities, namespace)
        dbt = DbtNames(reader, DBT_NAMESPACE)
        if repository is not None:
            dbt.learn(repository, self._known_namespace)
        return Names(
            namespace=namespace,
            find=lambda table: dbt.find(table) or known.find(table),
            columns_of=known.columns_of_dataset,
            job_at=dbt.job_at,
            tests_of=dbt.tests_of,
            exposure=dbt.exposure,
        )

    def _known_namespace(self, tables: Sequence[str]) -> str | None:
        """Return the one namespace in which the catalog has datasets of these whole names."""
        with self.store.reader() as reader:
            known = {
                node.namespace
                for table in tables
                for node in reader.nodes_named(table).values()
                if isinstance(node, DatasetId) and node.name == table
            }
        return known.pop() if len(known) == 1 else None

    def _ingest_many(self, events: Sequence[bytes]) -> None:
        for start in range(0, len(events), _BATCH):
            self.ingest(events[start : start + _BATCH])

    @property
    def waiting(self) -> int:
        """How many submitted events are not yet written."""
        return 0 if self._writer is None else self._writer.waiting

    # Out

    def trace(
        self,
        entity: str,
        direction: Direction | str = Direction.DOWNSTREAM,
        *,
        depth: int | None = None,
        as_of: str | None = None,
        limit: int = DEFAULT_LIMIT,
    ) -> Trace:
        """Answer where an entity's data goes to or comes from, and how complete that is."""
        question = _question(direction, depth, as_of, limit)
        with self.reading() as reader:
            found = self.resolve(entity, reader)
            return trace(self._graph, reader, found, question)

    def paths(self, source: str, target: str, *, limit: int = 10) -> Paths:
        """Answer by which routes data gets from one entity to another, shortest first."""
        question = _question(Direction.DOWNSTREAM, None, None, limit)
        with self.reading() as reader:
            start, end = self.resolve(source, reader), self.resolve(target, reader)
            if (start.column is None) != (end.column is None):
                raise InvalidRequestError("target", "give two columns, or none")
            return paths(self._graph, reader, start, end, question)

    def asset_tree(
        self, asset: str, direction: Direction | str = Direction.DOWNSTREAM, *, depth: int | None
    ) -> AssetTree:
        """Answer with the assets below and above one, nested."""
        question = _question(direction, depth, None, DEFAULT_LIMIT)
        with self.reading() as reader:
            identities = self._graph.nodes.identities
            found = find_asset(asset, reader, identities)
            traced = trace(self._graph, reader, found, question)
            root = build_tree(traced, Assets(reader, identities), reader)
        return AssetTree(
            id=root.id,
            direction=question.direction.value,
            depth=depth,
            graph=root,
            complete=traced.complete,
            blind_spots=traced.blind_spots,
        )

    def impact(self, changes: Sequence[Change]) -> Impact:
        """Answer what changes do to everyone downstream, and to those who write there."""
        with self.reading() as reader:
            proposed = [Proposed(*self._resolved(change, reader)) for change in changes]
            return analyse(proposed, self._world_of(reader))

    def impact_of_files(self, pairs: Sequence[FilePair], trees: Trees | None = None) -> Impact:
        """Answer what edited files do: what changes in meaning is found out first.

        `trees` hold the files around them, as they are in either commit.
        """
        with self.reading() as reader:
            world = self._world_of(reader)
            names = self._names(reader, DEFAULT_NAMESPACE)
            edits = find_edits(
                pairs,
                world,
                lambda files: (
                    read_texts(files, names) if trees is None else read_trees(files, names, trees)
                ),
            )
            proposed = [Proposed(*self._resolved(change, reader)) for change in edits.changes]
            proposed += edits.proposed
            found = analyse(proposed, world, edits.by_process, edits.rewritten)
        for message in edits.unknown:
            path, _, reason = message.partition(": ")
            found.blind_spots.append(BlindSpot(kind="unread_file", entity=path, message=reason))
            found.complete = False
        return found

    def fix(self, changes: Sequence[Change], root: Path) -> Fix:
        """Write the patch for changes: what can be mended safely in the files under `root`."""
        with self.reading() as reader:
            proposed = [Proposed(*self._resolved(change, reader)) for change in changes]
            return write_fix(proposed, self._world_of(reader), root)

    def gate(self, impact: Impact, policy: Policy | None = None) -> Verdict:
        """Decide about changes by policy; a waiver that lets something pass goes into the log."""
        verdict = decide(impact, policy)
        waived = [f for f in verdict.findings if f.waived]
        if waived:
            told = [{"rule": f.rule, "waiver": f.waived, "entities": f.entities} for f in waived]
            now = time.time_ns() // 1000
            with self.reading() as reader:
                targets = [self.resolve(target, reader).id for target in impact.targets]
            self.ingest(
                [
                    render_waiver_event(target, now, impact.changes, told)
                    for target in targets
                    if isinstance(target, DatasetId)
                ]
            )
        return verdict

    def split_entity(self, entity: str) -> tuple[str, str | None]:
        """Return the dataset, by its full id, and the column that a name means, if it means one.

        A column that no schema has told of may be meant where its dataset is known.
        """
        with self.reading() as reader:
            try:
                found = self.resolve(entity, reader).id
            except EntityNotFoundError:
                dataset, dot, column = entity.rpartition(".")
                if not dot:
                    raise
                found = self.resolve(dataset, reader).id
                if not isinstance(found, DatasetId):
                    raise
                return str(found), column
        if isinstance(found, ColumnId):
            return str(found.dataset), found.field
        return str(found), None

    def _resolved(self, change: Change, reader: Reader) -> tuple[Change, int]:
        entity = self.resolve(change.dataset, reader)
        if not isinstance(entity.id, DatasetId):
            raise InvalidRequestError("dataset", f"{entity.id} is no dataset")
        named = with_dataset(change, entity.id.name)
        return named, self._graph.nodes.identities.canonical(entity.node)

    def _world_of(self, reader: Reader) -> World:
        """Return the catalog as simulations see it; what was parsed is kept while it holds."""
        state = reader.state()
        if self._world is None or self._world[0] != state:
            before = None if self._world is None else self._world[1]
            self._world = (state, World(self._graph, before))
        world = self._world[1]
        world.reader = reader
        return world

    def find_event(self, digest: str) -> bytes:
        """Return an event as it was sent, by the SHA-256 that evidence names it by."""
        try:
            wanted = bytes.fromhex(digest)
        except ValueError as exc:
            raise InvalidRequestError("event", f"{digest!r} is not hexadecimal") from exc
        with self.store.reader() as reader:
            found = reader.find_event(wanted)
        if found is None:
            raise EntityNotFoundError(digest)
        return found

    def status(self) -> Status:
        """Say what the store holds."""
        with self.store.reader() as reader:
            received = reader.last_received_at()
            return Status(
                store=self.store.url,
                counts=reader.counts(),
                head=reader.state().seq,
                last_received=None if received is None else render_time(received),
            )

    # Keep

    def verify(
        self,
        *,
        expected: tuple[int, bytes] | None = None,
        progress: Callable[[int], None] = lambda done: None,
    ) -> Verification:
        """Recompute the log's hash chain and name the first entry that was altered."""
        with self.store.reader() as reader:
            found = verify_chain(reader.log(), expected=expected, progress=progress)
            projected = reader.state().seq
        if found.ok and found.entries < projected:  # the catalog remembers what the log lost
            found.ok, found.altered_seq = False, found.entries + 1
            found.reason = "is missing: the log was cut"
        return found

    def rebuild(self, progress: Callable[[int, int], None] = lambda done, total: None) -> int:
        """Drop the projections and fold the log again, to the identical catalog."""
        return self.store.rebuild(progress)

    # Who may use the server

    def create_key(self, name: str, role: str) -> str:
        """Make an API key and return it: the only time it can be seen."""
        return self.store.add_key(name, parse_role(role))

    def revoke_key(self, name: str) -> None:
        """Make an API key worthless from now on."""
        self.store.revoke_key(name)

    def list_keys(self) -> list[ApiKey]:
        """Return every key, revoked ones too, without the keys themselves."""
        with self.store.reader() as reader:
            return reader.list_keys()

    def has_keys(self) -> bool:
        """Tell whether requests need a key: once one was made, always."""
        return bool(self.list_keys())

    def find_role(self, key: str) -> KeyRole | None:
        """Return what a key allows, or None when it is unknown or revoked."""
        with self.store.reader() as reader:
            found = reader.find_key(key_digest(key))
        return None if found is None else parse_role(found.role)

    @contextmanager
    def reading(self) -> Iterator[Reader]:
        """Hold the graph, brought up to date, and a view of the store that matches it."""
        with self._graph.lock, self.store.reader() as reader:
            self._graph.refresh(reader)
            yield reader

    def resolve(self, entity: str, reader: Reader) -> Entity:
        """Return what a name means, or raise an error that says what it might have meant."""
        return resolve_any(entity, reader, self._graph.nodes.identities)


def _now() -> int:
    return time.time_ns() // 1000


def _job_name(found: SqlLineage, sql: str) -> str:
    """Name a script after what it writes, else after its text."""
    if found.outputs:
        return f"sql.{'+'.join(found.outputs)}"
    return f"sql.{hashlib.sha256(sql.encode()).hexdigest()[:12]}"


def _question(
    direction: Direction | str, depth: int | None, as_of: str | None, limit: int
) -> Question:
    if depth is not None and depth < 0:
        raise InvalidRequestError("depth", f"{depth} is below zero")
    if limit < 1:
        raise InvalidRequestError("limit", f"{limit} is below one")
    try:
        wanted = Direction(direction)
    except ValueError as exc:
        raise InvalidRequestError(
            "direction", f"{direction!r} is not one of upstream, downstream, both"
        ) from exc
    return Question(
        wanted,
        depth,
        FOREVER if as_of is None else _moment(as_of),
        limit,
        settings.read_number(settings.STALE_DAYS),
    )


def _moment(as_of: str) -> int:
    try:
        return parse_time(as_of, "as_of")
    except InvalidEventError as exc:
        raise InvalidRequestError("as_of", exc.reason) from exc
