"""The part that both SQL stores share: migrations, log and hash chain, projection, commit."""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from contextlib import ExitStack, contextmanager
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET

from downriver.errors import (
    InvalidEventError,
    InvalidRequestError,
    StoreError,
    StoreVersionError,
)
from downriver.fork_safety import renew_in_child
from downriver.model.access import ACTOR
from downriver.model.facts import EventRef, Facts
from downriver.openlineage import fold, parse_event
from downriver.store.access import keys
from downriver.store.audit import AuditAct, AuditWriter
from downriver.store.backup import TABLES, BackupEnd, read_backup
from downriver.store.catalog import tables
from downriver.store.catalog.encoding import compress, decompress
from downriver.store.catalog.projection import Projection
from downriver.store.catalog.reader import CatalogReader
from downriver.store.findings import FindingsTransaction
from downriver.store.hash_chain import (
    GENESIS,
    Verification,
    chain_value,
    require_whole_log,
    verify_chain,
)
from downriver.store.port import LogEntry, PreparedEvent, Receipt, StepTimes, StoreState
from downriver.store.redaction import NamePattern, redact_log
from downriver.store.verdicts import save_verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from downriver.model.verdicts import RecordedVerdict
    from downriver.openlineage import Event
    from downriver.store.access.keys import KeyRole
    from downriver.store.port import Row, SqlQueries, SqlTransaction
    from downriver.store.redaction import RedactedLog


class Migration(NamedTuple):
    """One step of the schema."""

    number: int
    name: str
    sql: str


def list_migrations(dialect: str) -> list[Migration]:
    """Return every migration of a dialect in order."""
    folder = resources.files("downriver.store") / "migrations" / dialect
    files = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda f: f.name
    )
    return [
        Migration(int(file.name[:4]), file.name.removesuffix(".sql"), file.read_text("utf-8"))
        for file in files
    ]


def pending_migrations(dialect: str, applied: int) -> list[Migration]:
    """Return the migrations a store at number `applied` still needs."""
    migrations = list_migrations(dialect)
    if applied > migrations[-1].number:
        raise StoreVersionError(applied, migrations[-1].number)
    return [migration for migration in migrations if migration.number > applied]


log = logging.getLogger("downriver")

_REBUILD_BATCH = 1000
_LOG_EVERY = 5.0  # seconds
# The state of the catalog with the newest log entry that it contains, and the head of the log.
_STATE = """
    SELECT generation, projected, coalesce((SELECT max(seq) FROM changes), 0), seq, chain FROM meta
    LEFT JOIN (SELECT seq, chain FROM log ORDER BY seq DESC LIMIT 1) AS head ON 1 = 1
"""


class SqlStore(ABC):
    """A store on a SQL database. Subclasses provide connections and pass rows to the driver."""

    url: str
    location: str | None

    def __init__(self) -> None:
        self.times = StepTimes()
        self._projection = Projection()
        self._audit = AuditWriter()
        self._generation = self._projected = 0
        self._head = (0, GENESIS)  # of the log, in the current write transaction
        self._newest_known = 0  # the newest log entry in the catalog, likewise
        self._write_lock = threading.Lock()
        self._per_thread = threading.local()
        renew_in_child(self)

    def renew(self) -> None:
        """Reset in a forked process, which needs its own connections."""
        self._projection = Projection()
        self._audit = AuditWriter()
        self._generation = self._projected = 0
        self._write_lock = threading.Lock()
        self._per_thread = threading.local()

    @abstractmethod
    def _transaction(self, first: str) -> AbstractContextManager[tuple[SqlTransaction, Row]]:
        """Open the write transaction: commits on exit, rolls back on an error.

        It returns the row of the query `first` in the same round trip.
        """

    @abstractmethod
    def _snapshot(self) -> AbstractContextManager[SqlQueries]:
        """Open a consistent view of what is committed."""

    @abstractmethod
    def close(self) -> None:
        """Release files and connections."""

    def state(self) -> StoreState:
        """Return the current state, including the writes of other processes."""
        with self.reader() as reader:
            return reader.state()

    @contextmanager
    def reader(self) -> Iterator[CatalogReader]:
        """Open a consistent view; within another in the same thread, it is the same view."""
        around: CatalogReader | None = getattr(self._per_thread, "reader", None)
        if around is not None:
            yield around
            return
        with self._snapshot() as queries:
            self._per_thread.reader = CatalogReader(queries)
            try:
                yield self._per_thread.reader
            finally:
                self._per_thread.reader = None

    def is_reading(self) -> bool:
        """Return whether this thread has a view open."""
        return getattr(self._per_thread, "reader", None) is not None

    def append(self, events: Sequence[Event]) -> list[Receipt]:
        """Write events to the log and fold them in; durable, all or none, when it returns."""
        return self.write([self.prepare(event) for event in events])

    def prepare(self, event: Event) -> PreparedEvent:
        """Fold and compress an event; this needs no lock."""
        clock = _Clock()
        facts = fold(event)
        self.times.fold += clock.lap()
        body = compress(event.raw)
        self.times.pack += clock.lap()
        return PreparedEvent(event, facts, body, ACTOR.get())

    def write(self, events: Sequence[PreparedEvent]) -> list[Receipt]:
        """Append prepared events."""
        if not events:
            return []
        clock = _Clock()
        with self._writing() as tx:
            self._require_whole_log()
            receipts, new, head = self._append_log(tx, events)
            self.times.append += clock.lap()
            if new:
                self._project(tx, [prepared.facts for prepared in new], head)
            self._audit.record(tx, _writes(events, receipts))
            self.times.project += clock.lap()
            state = StoreState(self._generation, head)
        self._record_commit(state)
        self.times.commit += clock.lap()
        self.times.events += len(events)
        return receipts

    def merge(self, facts: Facts, seq: int | None = None) -> None:
        """Merge facts of another store; a rebuild drops them, since no event has them.

        `seq` is the last log entry of the other store that they contain, if this one has no log.
        """
        with self._writing() as tx:
            self._project(tx, [facts], self._head[0] if seq is None else seq)

    def rebuild(self, progress: Callable[[int, int], None]) -> int:
        """Drop the projections and fold the log again; calls `progress(done, total)`."""
        with self._writing() as tx:
            self._require_whole_log()
            total, state = self._fold_again(tx, progress)
            self._audit.record(tx, [AuditAct.now("rebuild", "catalog")])
        self._record_commit(state)
        return total

    def restore(
        self, backup: Path, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> Verification:
        """Fill this empty store from a backup, all or nothing, and fold the log."""
        with self._writing() as tx:
            if self._head[0] or self._newest_known or tx.rows("SELECT name FROM api_keys LIMIT 1"):
                raise InvalidRequestError("--store", f"{self.url} is not empty")
            tx.execute("DELETE FROM audit")  # the backup has its own
            self._audit.forget()
            verified = _insert_backup(tx, backup)
            _, state = self._fold_again(tx, progress)
            self._audit.record(tx, [AuditAct.now("restore", "store")])
        self._record_commit(state)
        return verified

    def redact(
        self, name: str, record: Callable[[Mapping[int, bytes]], Event], *, done: bool
    ) -> RedactedLog:
        """Erase a name from facets in the log, record it with an event, and fold the log again."""
        with self._writing() as tx:
            self._require_whole_log()
            self._require_intact_log(tx)
            redacted_log = redact_log(tx, NamePattern(name), done=done)
            if not done or not redacted_log.entries:
                return redacted_log
            self._append_log(tx, [self.prepare(record(redacted_log.entries))])
            _, state = self._fold_again(tx, lambda _, __: None)
            self._audit.record(tx, [AuditAct.now("redact", "log")])
        self._record_commit(state)
        return redacted_log

    def _require_intact_log(self, tx: SqlTransaction) -> None:
        """Raise if an entry was altered: a redaction would record the hash of the altered body."""
        verification = verify_chain(CatalogReader(tx).log.entries())
        if not verification.ok:
            raise StoreError(
                f"{self.url}: the log is not intact: entry {verification.altered_seq} "
                f"{verification.reason}. Nothing was redacted. Restore the store from a backup"
            )

    def check(self) -> None:
        """Raise if events cannot be stored now, or would be lost."""
        with self.reader() as reader:
            require_whole_log(self.url, *reader.log_lengths())

    def _fold_again(
        self, tx: SqlTransaction, progress: Callable[[int, int], None]
    ) -> tuple[int, StoreState]:
        total: int = tx.rows("SELECT count(*) FROM log")[0][0]
        for table in tables.PROJECTIONS:
            tx.execute(f"DELETE FROM {table.name}")
        self._projection.forget()
        done = last_seq = 0
        for last_seq, events in _batches(tx):
            tx.merge(tables.RUN_EVENTS, _run_event_rows(events))
            self._project(tx, [fold(event) for _, event in events], last_seq)
            done += len(events)
            progress(done, total)
        tx.execute("UPDATE meta SET generation = generation + 1")
        self._generation += 1
        return total, StoreState(self._generation, last_seq)

    def _catch_up(self) -> None:
        """Rebuild the catalog if a migration has emptied it."""
        with self.reader() as reader:
            behind = reader.is_behind()
        if not behind:
            return
        with self._writing() as tx:
            if self._projected >= self._head[0]:
                return  # another process has rebuilt it
            log.warning("rebuilding the catalog of %s from the log after an upgrade", self.url)
            _, state = self._fold_again(tx, _log_progress())
        self._record_commit(state)

    def _record_commit(self, state: StoreState) -> None:  # noqa: B027 — not every store listens
        """Record a state that this process has just committed."""

    def add_key(
        self,
        name: str,
        role: KeyRole,
        namespaces: tuple[str, ...] = (),
        expires_at: int | None = None,
    ) -> str:
        """Create an API key and return it; it cannot be read again."""
        with self._writing() as tx:
            key = keys.add_key(tx, name, role, namespaces, expires_at)
            limits = "".join(f", namespace {pattern}" for pattern in namespaces)
            detail = f"role {role.name.lower()}{limits}"
            self._audit.record(tx, [AuditAct.now("create key", name, detail)])
            return key

    def revoke_key(self, name: str) -> None:
        """Revoke an API key."""
        with self._writing() as tx:
            keys.revoke_key(tx, name)
            self._audit.record(tx, [AuditAct.now("revoke key", name)])

    def record(self, acts: Sequence[AuditAct]) -> None:
        """Add acts to the audit log."""
        with self._writing() as tx:
            self._audit.record(tx, acts)

    def record_verdict(self, verdict: RecordedVerdict, at: int) -> None:
        """Record a verdict of the gate."""
        with self._writing() as tx:
            save_verdict(tx, verdict, at)

    @contextmanager
    def ledger(self) -> Iterator[FindingsTransaction]:
        """Open the write transaction for findings and alerts."""
        with self._writing() as tx:
            yield FindingsTransaction(tx)

    @contextmanager
    def _writing(self) -> Iterator[SqlTransaction]:
        with self._write_lock, ExitStack() as undo:
            # Before the lock is released: cached ids may have been rolled back.
            undo.callback(self._projection.forget)
            undo.callback(self._audit.forget)
            with self._transaction(_STATE) as (tx, state):
                self._keep_up(*state)
                yield tx
            undo.pop_all()

    def _require_whole_log(self) -> None:
        require_whole_log(self.url, self._head[0], self._newest_known)

    def _keep_up(
        self, generation: int, projected: int, changed: int, seq: int | None, chain: bytes | None
    ) -> None:
        self._head = (seq, bytes(chain)) if seq and chain else (0, GENESIS)
        self._newest_known = max(projected, changed)
        if generation != self._generation:
            self._projection.forget()
        elif projected != self._projected:
            self._projection.others_wrote()
        self._generation, self._projected = generation, projected

    def _append_log(
        self, tx: SqlTransaction, events: Sequence[PreparedEvent]
    ) -> tuple[list[Receipt], list[PreparedEvent], int]:
        digests = list(dict.fromkeys(prepared.event.ref.digest for prepared in events))
        seqs = self._known_seqs(tx, digests)
        seq, chain = self._head
        now = time.time_ns() // 1000
        rows: list[Row] = []
        receipts: list[Receipt] = []
        new: list[PreparedEvent] = []
        for prepared in events:
            digest = prepared.event.ref.digest
            seq_before = seqs.get(digest)
            if seq_before is None:
                seq += 1
                chain = chain_value(chain, seq, now, digest)
                rows.append((seq, digest, now, chain, prepared.body))
                seqs[digest] = seq
                new.append(prepared)
            receipts.append(Receipt(seq_before or seq, seq_before is not None))
        tx.merge(tables.LOG, rows)
        first = seq + 1 - len(new)
        tx.merge(tables.RUN_EVENTS, _run_event_rows((n, p.event) for n, p in enumerate(new, first)))
        return receipts, new, seq

    def _known_seqs(self, tx: SqlTransaction, digests: Sequence[bytes]) -> dict[bytes, int]:
        seqs = tx.find_ids(tables.LOG_KEY, [(digest,) for digest in digests])
        return {key[0]: seq for key, seq in seqs.items()}

    def _project(self, tx: SqlTransaction, batch: Sequence[Facts], last_seq: int) -> None:
        merged = Facts.empty()
        for facts in batch:
            merged.update(facts)
        self._projection.apply(tx, merged, last_seq)
        tx.execute("UPDATE meta SET projected = ?", (last_seq,))
        self._projected = last_seq


def _writes(events: Sequence[PreparedEvent], receipts: Sequence[Receipt]) -> Iterator[AuditAct]:
    """Yield the written entries of each actor in a batch."""
    written: dict[str, list[int]] = {}
    for prepared, receipt in zip(events, receipts, strict=True):
        written.setdefault(prepared.actor, []).append(receipt.seq)
    for actor, seqs in written.items():
        yield AuditAct(actor, "write", "events", "", len(seqs), (min(seqs), max(seqs)))


def _insert_backup(tx: SqlTransaction, backup: Path) -> Verification:
    """Insert what a backup contains. Raise if its log is not intact."""
    batch: list[Row] = []
    ends: list[BackupEnd] = []

    def entries() -> Iterator[LogEntry]:
        for part in read_backup(backup):
            if isinstance(part, LogEntry):
                batch.append((part.seq, part.digest, part.received_at, part.chain, part.body))
                if len(batch) == _REBUILD_BATCH:
                    tx.merge(tables.LOG, batch)
                    batch.clear()
                yield part
            elif isinstance(part, BackupEnd):
                ends.append(part)
            else:
                table, row = part
                columns = TABLES[table]
                places = ", ".join("?" * len(columns))
                tx.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", row)
        tx.merge(tables.LOG, batch)

    verified = verify_chain(entries())
    if not verified.ok:
        fault = f"entry {verified.altered_seq} {verified.reason}"
        raise InvalidRequestError("FILE", f"{backup} was altered: {fault}")
    if (verified.entries, verified.head) != (ends[0].entries, ends[0].head):
        raise InvalidRequestError("FILE", f"{backup} was altered: entries are missing")
    return verified


class _Clock:
    def __init__(self) -> None:
        self._at = time.perf_counter()

    def lap(self) -> float:
        before, self._at = self._at, time.perf_counter()
        return self._at - before


def _log_progress() -> Callable[[int, int], None]:
    """Return a callback that logs the progress every few seconds."""
    logged_at = time.monotonic()

    def log_progress(done: int, total: int) -> None:
        nonlocal logged_at
        if time.monotonic() - logged_at >= _LOG_EVERY:
            logged_at = time.monotonic()
            log.warning("%s of %s events done", f"{done:,}", f"{total:,}")

    return log_progress


def _run_event_rows(events: Iterable[tuple[int, Event]]) -> list[Row]:
    """Return the time and state of the events that are about a run."""
    return [
        (event.ref.at, seq, int(event.state))
        for seq, event in events
        if event.wire.run is not UNSET
    ]


def _batches(tx: SqlTransaction) -> Iterator[tuple[int, list[tuple[int, Event]]]]:
    """Yield the events of the whole log, a batch at a time, with the last seq of each."""
    after = 0
    sql = "SELECT seq, body, digest FROM log WHERE seq > ? ORDER BY seq LIMIT ?"
    while rows := tx.rows(sql, (after, _REBUILD_BATCH)):
        after = rows[-1][0]
        yield after, [(seq, _parse_entry(seq, bytes(body), bytes(d))) for seq, body, d in rows]


def _parse_entry(seq: int, packed: bytes, digest: bytes) -> Event:
    try:
        event = parse_event(decompress(packed) or b"")
    except InvalidEventError as exc:
        raise StoreError(
            f"log entry {seq} cannot be read ({exc.message}); run `downriver audit verify`"
        ) from exc
    event.ref = EventRef(event.ref.at, digest)  # of the body as received, also if redacted
    return event
