"""A read-only store on a lake, for `downriver serve --lake`.

The facts of the lake are merged into an embedded store in a temporary folder. So answers come from
the same code as those of a server that got the events itself. Facts merge in any order: a new
version of the lake adds its new runs.
"""

from __future__ import annotations

import logging
import threading
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NoReturn

from downriver.errors import DownriverError, ForbiddenError, LakeError, StoreError
from downriver.lake.server.lake_events import LakeEvents, LakeRunEvents
from downriver.lake.server.stored_facts import READ_TABLES, FactRuns, read_parts
from downriver.lake.storage.files import Folder
from downriver.lake.storage.tables import list_versions, read_version
from downriver.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from downriver.lake.storage.tables import LakeVersion, StoredRun
    from downriver.model.facts import Facts
    from downriver.model.verdicts import RecordedVerdict
    from downriver.openlineage import Event
    from downriver.store import AuditAct, CatalogReader, KeyRole, Receipt, StoreState, Verification
    from downriver.store.findings import FindingsTransaction
    from downriver.store.port import PreparedEvent
    from downriver.store.redaction import RedactedLog

log = logging.getLogger("downriver")

_REPLACED = (
    "the lake in {} was deleted and made again. Answers come from the deleted one: start the "
    "server again"
)
_TABLES = {f"facts.{table.name}": table.name for table in READ_TABLES}


class LakeStore:
    """The last built version of a lake as a store that refuses writes. Thread-safe.

    Open views stay the same while a new version is merged.
    """

    def __init__(self, location: str) -> None:
        self.url = location
        self._folder = Folder(location)
        self._temporary = TemporaryDirectory(prefix="downriver-lake-")
        self._copy = open_store(self._temporary.name)
        self.location = self._copy.location
        self.times = self._copy.times
        self._merged: dict[str, set[str]] = {name: set() for name in _TABLES.values()}
        self._version: LakeVersion | None = None
        self._replaced = False
        self._refreshing = threading.Lock()
        self._closing = threading.Event()
        self._follower: threading.Thread | None = None
        try:
            self.refresh()
        except BaseException:
            self.close()
            raise

    # Following the lake

    @property
    def version(self) -> int:
        """The version of the lake that answers come from."""
        return 0 if self._version is None else self._version.version

    def follow(self, seconds: float) -> None:
        """Merge new versions of the lake from now on. Look for one every `seconds`."""
        self._follower = threading.Thread(target=self._follow, args=(seconds,), daemon=True)
        self._follower.start()

    def _follow(self, seconds: float) -> None:
        failed = ""
        while not self._closing.wait(seconds):
            try:
                self.refresh()
                failed = ""
            except (DownriverError, OSError) as exc:
                if str(exc) != failed:  # do not repeat it every few seconds
                    log.warning("%s: a new version cannot be read: %s", self.url, exc)
                failed = str(exc)

    def refresh(self) -> bool:
        """Merge what is new in the lake. Return whether there is a new version."""
        with self._refreshing:
            versions = list_versions(self._folder)
            if not versions:
                raise LakeError(f"no lake in {self.url}; run `downriver lake ingest` and `build`")
            if versions[-1] == self.version:
                return False
            version = read_version(self._folder, versions[-1])
            if not version.tables:
                raise LakeError(f"the lake in {self.url} has no tables; run `downriver lake build`")
            self._replaced = self._is_another_lake(versions)
            if self._replaced:
                raise StoreError(_REPLACED.format(self.url))
            self._merge(version)
            self._version = version
            return True

    def _is_another_lake(self, versions: Sequence[int]) -> bool:
        """Return whether the lake was deleted and made again, so that facts may be gone."""
        known = self._version
        if known is None:
            return False
        if known.version in versions:
            return read_version(self._folder, known.version).made_at != known.made_at
        return versions[-1] < known.version

    def _merge(self, version: LakeVersion) -> None:
        runs = {
            short: version.tables[name].runs
            for name, short in _TABLES.items()
            if name in version.tables
        }
        new = {
            name: [run for run in of_table if run.path not in self._merged[name]]
            for name, of_table in runs.items()
        }
        merged = self._copy.state().seq
        for facts in read_parts(self._folder, _to_read(new, runs)):
            merged += 1
            self._copy.merge(facts, merged)
        self._merged = {name: {run.path for run in of_table} for name, of_table in runs.items()}

    # Reading

    def state(self) -> StoreState:
        """Return the state of the copy."""
        return self._copy.state()

    @contextmanager
    def reader(self) -> Iterator[CatalogReader]:
        """Open a consistent view. Events come from the lake itself."""
        with self._copy.reader() as reader:
            if self._version is not None:
                reader.log = LakeEvents(self._folder, self._version)
                reader.activity = LakeRunEvents(self.url, reader.activity)
            yield reader

    def check(self) -> None:
        """Raise if answers come from a lake that was deleted."""
        if self._replaced:
            raise StoreError(_REPLACED.format(self.url))

    def close(self) -> None:
        """Remove the copy."""
        self._closing.set()
        if self._follower is not None:
            self._follower.join()
        self._copy.close()
        self._temporary.cleanup()

    # What a server writes about itself

    def record(self, acts: Sequence[AuditAct]) -> None:
        """Add acts to the audit log of this server. It ends with the server."""
        self._copy.record(acts)

    def record_verdict(self, verdict: RecordedVerdict, at: int) -> None:
        """Record a verdict of the gate until the server ends."""
        self._copy.record_verdict(verdict, at)

    # Refused

    def prepare(self, event: Event) -> PreparedEvent:
        """Refuse."""
        self._refuse("takes no events")

    def append(self, events: Sequence[Event]) -> list[Receipt]:
        """Refuse."""
        self._refuse("takes no events")

    def write(self, events: Sequence[PreparedEvent]) -> list[Receipt]:
        """Refuse."""
        self._refuse("takes no events")

    def merge(self, facts: Facts, seq: int | None = None) -> None:
        """Refuse."""
        self._refuse("takes no facts")

    def rebuild(self, progress: Callable[[int, int], None]) -> int:
        """Refuse."""
        self._refuse("is rebuilt by `downriver lake build --full`")

    def restore(
        self, backup: Path, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> Verification:
        """Refuse."""
        self._refuse("takes no backup")

    def add_key(
        self,
        name: str,
        role: KeyRole,
        namespaces: tuple[str, ...] = (),
        expires_at: int | None = None,
    ) -> str:
        """Refuse."""
        self._refuse("has no API keys; use tokens of an issuer (DOWNRIVER_OIDC_ISSUER)")

    def revoke_key(self, name: str) -> None:
        """Refuse."""
        self._refuse("has no API keys; use tokens of an issuer (DOWNRIVER_OIDC_ISSUER)")

    def redact(
        self, name: str, record: Callable[[Mapping[int, bytes]], Event], *, done: bool
    ) -> RedactedLog:
        """Refuse."""
        self._refuse("is not redacted; redact the log that it was read from")

    @contextmanager
    def ledger(self) -> Iterator[FindingsTransaction]:
        """Open the write transaction for findings and alerts; they end with the server."""
        with self._copy.ledger() as transaction:
            yield transaction

    def _refuse(self, what: str) -> NoReturn:
        raise ForbiddenError(
            f"this server answers from the lake in {self.url} and changes nothing: a lake {what}. "
            "Add events with `downriver lake ingest` and `downriver lake build`"
        )


def _to_read(
    new: Mapping[str, Sequence[StoredRun]], every: Mapping[str, Sequence[StoredRun]]
) -> FactRuns:
    """Return the runs to read.

    The folded facts of new events name the nodes and runs that they refer to. Merged facts may
    refer to nodes and runs of any run of the tables.
    """
    is_folded = all(run.folded for runs in new.values() for run in runs)
    return FactRuns(new, new if is_folded else every)
