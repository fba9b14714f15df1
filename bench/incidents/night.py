"""Runs a pipeline for one night, and returns what an integration would report of it."""

from __future__ import annotations

import datetime as dt
import random
import uuid
from collections.abc import Iterator
from typing import Any

import duckdb
import msgspec

from bench.incidents.pipeline import Fault, Pipeline, Step
from downriver.capture.sql import parse_sql_lineage
from downriver.capture.sql.events import SqlJob, render_sql_event
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.wire import parse_time

START = dt.datetime(2026, 3, 2, 2, tzinfo=dt.timezone.utc)  # a Monday
NAMESPACE = "postgres://warehouse:5432"
JOBS = "bench"
Json = dict[str, Any]


class Night:
    """One night of a pipeline: runs its jobs and returns the events."""

    def __init__(
        self, pipeline: Pipeline, db: duckdb.DuckDBPyConnection, night: int, chance: random.Random
    ) -> None:
        self._pipeline = pipeline
        self._db = db
        self._at = START + dt.timedelta(days=night, seconds=chance.randrange(90))
        self._number = night
        self._chance = chance

    def events(self, fault: Fault | None = None) -> Iterator[bytes]:
        """Run the night, with a fault if one is given, and yield its events."""
        if fault is not None and fault.detail == "late":
            self._copy_sources()
        self._pipeline.load(self._db, self._chance, self._number)
        if fault is not None:
            self._inject(fault)
        stopped: set[str] = set()  # an orchestrator does not start jobs downstream of a failed one
        for place, step in enumerate(self._pipeline.steps):
            at = self._at + dt.timedelta(minutes=5 * place)
            if fault is not None and fault.detail == "late" and step.table == fault.table:
                continue
            select = _edited(step, fault)
            if fault is not None and step.job == self._touched(fault):
                select = f"{select} -- reviewed"
            read = {t for t in self._tables() if f" {t} " in f"{select} "}
            if stopped & read:
                stopped.add(step.table)
                continue
            error = self._run(step, select, fault)
            yield from self._rendered(step, select, at, error)
            if error:
                stopped.add(step.table)

    def _touched(self, fault: Fault) -> str:
        """Return the job with an edit without effect, the same for each fault."""
        jobs = [s.job for s in self._pipeline.steps if s.select and s.table != fault.table]
        return jobs[sum(map(ord, fault.detail)) % len(jobs)]

    def _tables(self) -> list[str]:
        return [step.table for step in self._pipeline.steps]

    def _copy_sources(self) -> None:
        for step in self._pipeline.steps:
            if not step.select:
                self._db.execute(f"create or replace table kept_{step.table} as from {step.table}")

    def _inject(self, fault: Fault) -> None:
        self._db.execute(f"alter table {fault.harmless} add column note_2 varchar")
        if fault.detail == "late":  # last night's rows are still there, and the newest are missing
            kept = f"kept_{fault.table}"
            self._db.execute(
                f"create or replace table {fault.table} as from {kept} limit 60 percent"
            )
        elif fault.detail != "fail" and " -> " not in fault.detail:
            self._db.execute(fault.detail)

    def _run(self, step: Step, select: str, fault: Fault | None) -> str:
        if fault is not None and fault.detail == "fail" and step.table == fault.table:
            return "connection to the warehouse was lost"
        if not select:
            return ""
        try:
            self._db.execute(f"create or replace table {step.table} as {select}")
        except duckdb.Error as exc:
            return str(exc).partition("\n")[0]
        return ""

    def _rendered(self, step: Step, select: str, at: dt.datetime, error: str) -> Iterator[bytes]:
        moment = at.isoformat().replace("+00:00", "Z")
        end = (at + dt.timedelta(minutes=2)).isoformat().replace("+00:00", "Z")
        run = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{step.job}{moment}"))
        job = JobId(JOBS, step.job)
        event = self._sql_event(step, select, job, end, run)
        yield msgspec.json.encode(
            {**event, "eventType": "START", "eventTime": moment, "inputs": [], "outputs": []}
        )
        event["eventType"] = "FAIL" if error else "COMPLETE"
        if error:
            event["run"]["facets"] = {
                "errorMessage": {"message": error, "programmingLanguage": "SQL"}
            }
        else:
            facets, measured = self._measures(step.table)
            output = event["outputs"][0]
            output.setdefault("facets", {}).update(facets)
            output["outputFacets"] = measured
        yield msgspec.json.encode(event)

    def _sql_event(self, step: Step, select: str, job: JobId, at: str, run: str) -> Json:
        if not select:
            return {
                "eventTime": at,
                "producer": "https://github.com/downriver/bench",
                "run": {"runId": run},
                "job": {"namespace": JOBS, "name": step.job},
                "inputs": [
                    {"namespace": "sftp://partner", "name": step.table.removeprefix("raw_")}
                ],
                "outputs": [{"namespace": NAMESPACE, "name": step.table}],
            }
        sql = f"create or replace table {step.table} as {select}"
        known = {table: list(self._columns(table)) for table in self._tables()}
        lineage = parse_sql_lineage(sql, dialect="duckdb", schema=known)
        rendered = render_sql_event(
            lineage, SqlJob(job, sql), parse_time(at, "at"),
            lambda name: DatasetId(NAMESPACE, name.rpartition(".")[2]), run=run,
        )  # fmt: skip
        found: Json = msgspec.json.decode(rendered.raw)
        return found

    def _columns(self, table: str) -> dict[str, str]:
        try:
            rows = self._db.execute(f"describe {table}").fetchall()
        except duckdb.Error:
            return {}
        return {row[0]: row[1] for row in rows}

    def _measures(self, table: str) -> tuple[Json, Json]:
        columns = self._columns(table)
        numeric = {n for n, t in columns.items() if t.startswith(("DOUBLE", "DECIMAL", "HUGEINT"))}
        parts = ["count(*)"]
        for name in columns:
            parts.append(f"count(*) - count({name})")
            parts.append(f"avg({name})" if name in numeric else "null")
        row = self._db.execute(f"select {', '.join(parts)} from {table}").fetchone() or ()
        metrics: Json = {}
        for place, name in enumerate(columns):
            metrics[name] = {"nullCount": row[1 + 2 * place]}
            if row[2 + 2 * place] is not None and row[0]:
                metrics[name]["sum"] = float(row[2 + 2 * place]) * row[0]
                metrics[name]["count"] = row[0]
        fields = [{"name": name, "type": kind} for name, kind in columns.items()]
        measured = {
            "outputStatistics": {"rowCount": row[0]},
            "dataQualityMetrics": {"rowCount": row[0], "columnMetrics": metrics},
        }
        return {"schema": {"fields": fields}}, measured


def _edited(step: Step, fault: Fault | None) -> str:
    """Return the SQL of a job with the fault."""
    if fault is None or step.table != fault.table or " -> " not in fault.detail:
        return step.select
    old, new = fault.detail.split(" -> ")
    if old not in step.select:
        raise ValueError(f"{old!r} is not in the SQL of {step.job}")
    return step.select.replace(old, new)
