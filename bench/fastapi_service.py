"""A simple collector as a baseline: FastAPI, pydantic, one transaction per event.

It stores the event, its datasets, job, run and edges, and responds when they are committed. It has
no facets, columns, hashes or search.

`python -m bench.fastapi_service STORE` prints its port, and stops when its input ends.
"""

from __future__ import annotations

import socket
import sqlite3
import sys
import threading
from typing import Any

import psycopg
import uvicorn
from fastapi import FastAPI, Response
from pydantic import BaseModel

_TABLES = (
    "CREATE TABLE events (at TEXT, body TEXT)",
    "CREATE TABLE nodes (kind TEXT, scope TEXT, name TEXT, PRIMARY KEY (kind, scope, name))",
    "CREATE TABLE runs (id TEXT PRIMARY KEY, job TEXT, state TEXT)",
    "CREATE TABLE edges (job TEXT, dataset TEXT, kind TEXT, PRIMARY KEY (job, dataset, kind))",
)


class Named(BaseModel):
    """A dataset or job."""

    namespace: str
    name: str
    facets: dict[str, Any] = {}


class Run(BaseModel):
    """A run."""

    runId: str  # noqa: N815 - the name in OpenLineage
    facets: dict[str, Any] = {}


class RunEvent(BaseModel):
    """An event of a run."""

    eventTime: str  # noqa: N815
    eventType: str | None = None  # noqa: N815
    run: Run
    job: Named
    inputs: list[Named] = []
    outputs: list[Named] = []


class EventStore:
    """Rows of a SQLite file or a PostgreSQL database; one writer at a time."""

    def __init__(self, location: str) -> None:
        self._mark = "%s" if location.startswith("postgresql://") else "?"
        self._connection: Any = (
            psycopg.connect(location)
            if location.startswith("postgresql://")
            else sqlite3.connect(location, check_same_thread=False)
        )
        self._writing = threading.Lock()
        for table in _TABLES:
            self._connection.execute(table)
        self._connection.commit()

    def add(self, event: RunEvent) -> None:
        """Store an event and commit."""
        job = f"{event.job.namespace}:{event.job.name}"
        with self._writing:
            self._insert("events", event.eventTime, event.model_dump_json())
            self._insert("nodes", "job", event.job.namespace, event.job.name)
            self._insert("runs", event.run.runId, job, event.eventType)
            for kind, datasets in (("reads", event.inputs), ("writes", event.outputs)):
                for dataset in datasets:
                    self._insert("nodes", "dataset", dataset.namespace, dataset.name)
                    self._insert("edges", job, f"{dataset.namespace}:{dataset.name}", kind)
            self._connection.commit()

    def _insert(self, table: str, *values: str | None) -> None:
        marks = ", ".join([self._mark] * len(values))
        self._connection.execute(
            f"INSERT INTO {table} VALUES ({marks}) ON CONFLICT DO NOTHING", values
        )


def make_app(store: EventStore) -> FastAPI:
    """Return the service."""
    app = FastAPI()

    @app.post("/api/v1/lineage", status_code=201)
    def post_event(event: RunEvent) -> Response:
        store.add(event)
        return Response(status_code=201)

    return app


def main() -> None:
    server = uvicorn.Server(uvicorn.Config(make_app(EventStore(sys.argv[1])), log_level="error"))
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(256)
        threading.Thread(target=_await_end, args=(server,), daemon=True).start()
        print(listening.getsockname()[1], flush=True)
        server.run(sockets=[listening])


def _await_end(server: uvicorn.Server) -> None:
    sys.stdin.read()
    server.should_exit = True


if __name__ == "__main__":
    main()
