"""Kills the server under load: no acknowledged event is lost, and the catalog matches the log."""

from __future__ import annotations

import asyncio
import hashlib
import random
import sys
from typing import TYPE_CHECKING

import msgspec
import uvloop

from bench.client import event_of, post_until_cut_off, render_request
from bench.databases import postgres_database, sqlite_file
from bench.events import Events
from bench.postmaster import running_postmaster
from bench.report import Table
from bench.server import ServerProcess
from downriver.service import Lineage
from downriver.store import verify_chain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from bench.postmaster import Postmaster
    from downriver.store.port import LogEntry

_CONNECTIONS = 8
_SHORTEST, _LONGEST = 0.3, 1.0  # seconds under load until the kill
_COLUMNS = 4
_JOBS_A_ROUND = 10**6  # more than one round can send
_REPEATED_EVERY = 3
_DATABASE_KILLED_EVERY = 4


class Survival(msgspec.Struct):
    """The result after all kills."""

    rounds: int = 0
    database_kills: int = 0
    acknowledged: int = 0
    missing: int = 0
    logged: int = 0
    chain_faults: list[str] = []
    catalog_is_the_log: bool = False

    @property
    def intact(self) -> bool:
        """True if no acknowledged event is lost and log and catalog are intact."""
        return not self.missing and not self.chain_faults and self.catalog_is_the_log


def run(*, quick: bool) -> Iterator[Table]:
    """Kill servers on both stores and yield the result."""
    rounds = 6 if quick else 20
    with sqlite_file() as location:
        sqlite = kill_repeatedly(location, rounds)
    with running_postmaster() as postmaster, postgres_database(postmaster.url) as location:
        postgres = kill_repeatedly(location, rounds, postmaster=postmaster)
    yield Table(
        "kill -9 under load",
        ("", "kills", "acknowledged", "missing", "in the log", "chain", "catalog = log"),
        [_row("SQLite", sqlite), _row("PostgreSQL", postgres)],
        (
            f"{_CONNECTIONS} connections post events; after a random {_SHORTEST} to {_LONGEST} s "
            "the server gets SIGKILL and starts again on the same store.",
            f"In {postgres.database_kills} of PostgreSQL's rounds all processes of the "
            "database get SIGKILL, too.",
            "The log may contain more events than were acknowledged: the kill can prevent a "
            "response.",
        ),
    )


def _row(store: str, survival: Survival) -> tuple[str, ...]:
    return (
        store,
        str(survival.rounds),
        f"{survival.acknowledged:,}",
        str(survival.missing),
        f"{survival.logged:,}",
        "; ".join(survival.chain_faults) or "verifies",
        "yes" if survival.catalog_is_the_log else "NO",
    )


def kill_repeatedly(
    location: str, rounds: int, *, postmaster: Postmaster | None = None, seed: int = 1
) -> Survival:
    """Load a server and kill it repeatedly on one store; check the log after each kill.

    With a `postmaster`, the database is killed in some rounds, too.
    """
    chance = random.Random(seed)
    events = Events(_COLUMNS)
    acknowledged: set[bytes] = set()
    found = Survival(rounds)
    for at in range(rounds):
        print(f"durability: kill {at + 1} of {rounds}", file=sys.stderr)
        database = postmaster if at % _DATABASE_KILLED_EVERY == 1 else None
        requests = _requests(events, at * _JOBS_A_ROUND)
        seconds = chance.uniform(_SHORTEST, _LONGEST)
        stored = uvloop.run(_kill_under_load(location, requests, seconds, database))
        acknowledged.update(hashlib.sha256(event_of(request)).digest() for request in stored)
        if database is not None:
            found.database_kills += 1
            database.start()
        _check_log(location, acknowledged, found)
    found.acknowledged = len(acknowledged)
    found.catalog_is_the_log = _catalog_is_the_log(location)
    return found


def _requests(events: Events, number: int) -> Iterator[bytes]:
    """Yield an infinite sequence of requests: runs of new jobs, some of them repeated."""
    for count, event in enumerate(events.first_seen_from(number)):
        yield render_request(event)
        if count % _REPEATED_EVERY == 0:
            yield render_request(events.repeat(event))


async def _kill_under_load(
    location: str, requests: Iterator[bytes], seconds: float, database: Postmaster | None
) -> list[bytes]:
    """Return the requests that got a 201 before the kill."""
    with ServerProcess(location) as server:
        load = asyncio.create_task(post_until_cut_off(server.port, requests, _CONNECTIONS))
        await asyncio.sleep(seconds)
        if database is not None:
            database.kill()
        server.kill()
        return await load


def _check_log(location: str, acknowledged: set[bytes], found: Survival) -> None:
    logged: set[bytes] = set()
    with Lineage.open(location, create=False) as lineage, lineage.store.reader() as reader:
        verification = verify_chain(_noting(reader.log.entries(), logged))
    if not verification.ok:
        found.chain_faults.append(f"entry {verification.altered_seq} {verification.reason}")
    found.logged = len(logged)
    found.missing = len(acknowledged - logged)


def _noting(entries: Iterable[LogEntry], digests: set[bytes]) -> Iterator[LogEntry]:
    for entry in entries:
        digests.add(entry.digest)
        yield entry


def _catalog_is_the_log(location: str) -> bool:
    """Return whether a rebuild from the log equals the catalog after the kills."""
    with Lineage.open(location, create=False) as lineage:
        with lineage.store.reader() as reader:
            survived = reader.dump()
        lineage.admin.rebuild()
        with lineage.store.reader() as reader:
            return survived == reader.dump()
