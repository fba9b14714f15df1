"""How often an incident report ranks the true cause first, on pipelines with injected faults.

`python -m bench.root_cause [--seed 1] [--show]`. The SQL of two pipelines, churn and orders, runs
in DuckDB for 28 nights on random data. Events have what an integration sees: schemas, row counts,
nulls, column lineage, SQL and errors. On the last night one fault is injected into the data or the
code: a dropped column, a late source, a spike of nulls, a changed filter, a failed job or a wrong
join. Two harmless changes happen in the same night: another table gets a new column, and the SQL of
another job gets a comment. Then the incident report of the last table is created. The cause is
found if the first suspect is the dataset with the injected fault, or the job that writes it.
"""

from __future__ import annotations

import argparse
import datetime as dt
import random
import shutil
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import msgspec
from rich.console import Console

from bench.report import Table, print_table
from downriver.capture.sql import parse_sql_lineage
from downriver.capture.sql.events import SqlJob, render_sql_event
from downriver.model.governance import Incident
from downriver.model.ids import DatasetId, JobId
from downriver.openlineage.wire import parse_time
from downriver.service import Lineage

START = dt.datetime(2026, 3, 2, 2, tzinfo=dt.timezone.utc)  # a Monday
NIGHTS = 28
NAMESPACE = "postgres://warehouse:5432"
JOBS = "bench"
Json = dict[str, Any]
Load = Callable[[duckdb.DuckDBPyConnection, random.Random, int], None]


class Step(NamedTuple):
    """A job: its name, the table that it writes, and its SQL (none for a load)."""

    job: str
    table: str
    select: str = ""


class Pipeline(NamedTuple):
    """A pipeline: loads and transformations in order, and the table where a problem is noticed."""

    name: str
    steps: tuple[Step, ...]
    load: Load
    symptoms: tuple[str, ...]


class Fault(NamedTuple):
    """A fault: its kind, the table it is injected into or the table of its job, and how."""

    pipeline: str
    kind: str
    table: str
    detail: str  # SQL that changes the data, or `old -> new` in the SQL of the job
    symptom: str
    harmless: str  # a table that gets a new column the same night


def load_orders(db: duckdb.DuckDBPyConnection, chance: random.Random, night: int) -> None:
    count = 4000 + chance.randrange(-150, 150) + 10 * night
    seed = chance.random()
    db.execute(f"select setseed({seed})")
    db.execute(
        "create or replace table raw_customers as select i as customer_id, "
        "'c' || i || '@mail.example' as email, "
        "case when random() < 0.6 then 'DE' when random() < 0.6 then 'FR' else 'IT' end as country,"
        " case when random() < 0.02 then null else date '2024-01-01' + cast(i % 700 as int) end "
        "as signed_up from range(800) t(i)"
    )
    db.execute(
        "create or replace table raw_orders as select i as order_id, "
        "cast(floor(random() * 800) as bigint) as customer_id, "
        "round(5 + random() * 200, 2) as total, "
        "case when random() < 0.8 then 'completed' when random() < 0.5 then 'open' else 'returned' "
        f"end as status, date '2026-03-02' + {night} - cast(floor(random() * 30) as int) "
        f"as ordered_on from range({count}) t(i)"
    )
    db.execute(
        "create or replace table raw_items as select i as item_id, "
        f"cast(floor(random() * {count}) as bigint) as order_id, 1 + i % 3 as quantity, "
        f"'sku' || (i % 50) as sku from range({3 * count}) t(i)"
    )


def load_churn(db: duckdb.DuckDBPyConnection, chance: random.Random, night: int) -> None:
    weeks = 12
    db.execute(f"select setseed({chance.random()})")
    customers = 1200 + 3 * night
    db.execute(
        "create or replace table raw_crm as select i as customer_id, "
        "case when i % 3 = 0 then 'pro' else 'basic' end as plan, "
        f"date '2025-01-01' + cast(i % 400 as int) as signup from range({customers}) t(i)"
    )
    db.execute(
        "create or replace table raw_usage as select i // 12 as customer_id, i % 12 as week, "
        "round(random() * 300) as minutes, "
        "case when random() < 0.03 then null else date '2026-03-01' - cast(floor(random() * 40) as "
        f"int) end as last_login from range({customers * weeks}) t(i)"
    )
    db.execute(
        "create or replace table raw_tickets as select i as ticket_id, "
        f"cast(floor(random() * {customers}) as bigint) as customer_id, random() < 0.1 as urgent, "
        "round(random() * 72, 1) as hours_waited "
        f"from range({900 + chance.randrange(-40, 40)}) t(i)"
    )
    db.execute(
        "create or replace table raw_invoices as select i as invoice_id, "
        f"i % {customers} as customer_id, round(10 + random() * 90, 2) as amount, "
        "case when random() < 0.9 then 'paid' else 'open' end as state, "
        f"cast(floor(random() * 30) as int) as days_to_pay from range({2 * customers}) t(i)"
    )


ORDERS = Pipeline(
    "orders",
    (
        Step("load_customers", "raw_customers"),
        Step("load_orders", "raw_orders"),
        Step("load_items", "raw_items"),
        Step(
            "stg_customers",
            "stg_customers",
            "select customer_id, lower(email) as email, country, signed_up from raw_customers",
        ),
        Step(
            "stg_orders",
            "stg_orders",
            "select order_id, customer_id, total, ordered_on from raw_orders "
            "where status = 'completed'",
        ),
        Step(
            "stg_items",
            "stg_items",
            "select order_id, sum(quantity) as quantity, count(distinct sku) as skus "
            "from raw_items group by order_id",
        ),
        Step(
            "fct_orders",
            "fct_orders",
            "select o.order_id, o.customer_id, c.country, o.total, i.quantity, o.ordered_on "
            "from stg_orders o left join stg_customers c on o.customer_id = c.customer_id "
            "left join stg_items i on o.order_id = i.order_id",
        ),
        Step(
            "customer_value",
            "customer_value",
            "select customer_id, country, sum(total) as spend, count(order_id) as orders, "
            "max(ordered_on) as last_order_on from fct_orders group by customer_id, country",
        ),
        Step(
            "revenue_report",
            "revenue_report",
            "select country, ordered_on, sum(total) as revenue, sum(quantity) as pieces "
            "from fct_orders group by country, ordered_on",
        ),
    ),
    load_orders,
    ("revenue_report", "customer_value"),
)
CHURN = Pipeline(
    "churn",
    (
        Step("load_crm", "raw_crm"),
        Step("load_usage", "raw_usage"),
        Step("load_tickets", "raw_tickets"),
        Step("load_invoices", "raw_invoices"),
        Step(
            "clean_customers",
            "customers",
            "select customer_id, plan, signup from raw_crm where customer_id is not null",
        ),
        Step(
            "clean_usage",
            "usage",
            "select customer_id, avg(minutes) as minutes, max(last_login) as last_login "
            "from raw_usage group by customer_id",
        ),
        Step(
            "clean_tickets",
            "tickets",
            "select customer_id, count(ticket_id) as tickets, avg(hours_waited) as hours_waited "
            "from raw_tickets group by customer_id",
        ),
        Step(
            "clean_payments",
            "payments",
            "select customer_id, sum(amount) as spend, avg(days_to_pay) as days_to_pay "
            "from raw_invoices where state = 'paid' group by customer_id",
        ),
        Step(
            "churn_features",
            "features",
            "select c.customer_id, c.plan, u.minutes, u.last_login, coalesce(t.tickets, 0) "
            "as tickets, t.hours_waited, p.spend, p.days_to_pay from customers c "
            "left join usage u on c.customer_id = u.customer_id "
            "left join tickets t on c.customer_id = t.customer_id "
            "left join payments p on c.customer_id = p.customer_id",
        ),
        Step(
            "predict",
            "predictions",
            "select customer_id, plan, 1 / (1 + exp(minutes / 100 - tickets + spend / 100)) "
            "as churn_probability from features where minutes is not null and spend is not null",
        ),
        Step(
            "revenue_at_risk",
            "revenue_at_risk",
            "select r.plan, count(r.customer_id) as customers, "
            "sum(p.spend * r.churn_probability) as at_risk from predictions r "
            "join payments p on r.customer_id = p.customer_id group by r.plan",
        ),
    ),
    load_churn,
    ("predictions", "revenue_at_risk"),
)
PIPELINES = {pipeline.name: pipeline for pipeline in (ORDERS, CHURN)}

FAULTS = (
    Fault(
        "orders",
        "dropped column",
        "raw_customers",
        "alter table raw_customers drop column country",
        "revenue_report",
        "raw_items",
    ),
    Fault(
        "orders",
        "dropped column",
        "raw_orders",
        "alter table raw_orders drop column total",
        "customer_value",
        "raw_customers",
    ),
    Fault(
        "orders",
        "dropped column",
        "raw_items",
        "alter table raw_items drop column quantity",
        "revenue_report",
        "raw_orders",
    ),
    Fault(
        "churn",
        "dropped column",
        "raw_usage",
        "alter table raw_usage drop column last_login",
        "predictions",
        "raw_crm",
    ),
    Fault(
        "churn",
        "dropped column",
        "raw_invoices",
        "alter table raw_invoices drop column amount",
        "revenue_at_risk",
        "raw_tickets",
    ),
    Fault(
        "orders",
        "late source",
        "raw_orders",
        "late",
        "revenue_report",
        "raw_items",
    ),
    Fault(
        "orders",
        "late source",
        "raw_customers",
        "late",
        "customer_value",
        "raw_items",
    ),
    Fault(
        "orders",
        "late source",
        "raw_items",
        "late",
        "revenue_report",
        "raw_customers",
    ),
    Fault(
        "churn",
        "late source",
        "raw_usage",
        "late",
        "predictions",
        "raw_crm",
    ),
    Fault(
        "churn",
        "late source",
        "raw_invoices",
        "late",
        "revenue_at_risk",
        "raw_tickets",
    ),
    Fault(
        "orders",
        "null spike",
        "raw_customers",
        "update raw_customers set country = null where random() < 0.4",
        "revenue_report",
        "raw_orders",
    ),
    Fault(
        "orders",
        "null spike",
        "raw_orders",
        "update raw_orders set customer_id = null where random() < 0.3",
        "customer_value",
        "raw_items",
    ),
    Fault(
        "orders",
        "null spike",
        "raw_items",
        "update raw_items set quantity = null where random() < 0.8",
        "revenue_report",
        "raw_customers",
    ),
    Fault(
        "churn",
        "null spike",
        "raw_usage",
        "update raw_usage set minutes = null where customer_id % 3 = 0",
        "predictions",
        "raw_tickets",
    ),
    Fault(
        "churn",
        "null spike",
        "raw_invoices",
        "update raw_invoices set amount = null where customer_id % 2 = 0",
        "revenue_at_risk",
        "raw_crm",
    ),
    Fault(
        "orders",
        "changed filter",
        "stg_orders",
        "'completed' -> 'complete_d'",
        "revenue_report",
        "raw_items",
    ),
    Fault(
        "orders",
        "changed filter",
        "stg_orders",
        "status = 'completed' -> status = 'open'",
        "customer_value",
        "raw_customers",
    ),
    Fault(
        "churn",
        "changed filter",
        "customers",
        "is not null -> % 4 = 0",
        "predictions",
        "raw_usage",
    ),
    Fault(
        "churn",
        "changed filter",
        "payments",
        "state = 'paid' -> state = 'open'",
        "revenue_at_risk",
        "raw_crm",
    ),
    Fault(
        "churn",
        "changed filter",
        "payments",
        "'paid' -> 'PAID'",
        "predictions",
        "raw_tickets",
    ),
    Fault(
        "orders",
        "failed job",
        "stg_orders",
        "fail",
        "revenue_report",
        "raw_items",
    ),
    Fault(
        "orders",
        "failed job",
        "stg_items",
        "fail",
        "revenue_report",
        "raw_customers",
    ),
    Fault(
        "orders",
        "failed job",
        "fct_orders",
        "fail",
        "customer_value",
        "raw_items",
    ),
    Fault(
        "churn",
        "failed job",
        "payments",
        "fail",
        "revenue_at_risk",
        "raw_usage",
    ),
    Fault(
        "churn",
        "failed job",
        "features",
        "fail",
        "predictions",
        "raw_tickets",
    ),
    Fault(
        "orders",
        "wrong join",
        "fct_orders",
        "o.customer_id = c.customer_id -> o.order_id = c.customer_id",
        "revenue_report",
        "raw_items",
    ),
    Fault(
        "orders",
        "wrong join",
        "fct_orders",
        "o.order_id = i.order_id -> o.customer_id = i.order_id",
        "revenue_report",
        "raw_customers",
    ),
    Fault(
        "orders",
        "wrong join",
        "fct_orders",
        "left join stg_items -> join stg_items",
        "customer_value",
        "raw_customers",
    ),
    Fault(
        "churn",
        "wrong join",
        "features",
        "c.customer_id = p.customer_id -> c.customer_id = p.spend",
        "predictions",
        "raw_tickets",
    ),
    Fault(
        "churn",
        "wrong join",
        "features",
        "c.customer_id = u.customer_id -> c.customer_id = u.minutes",
        "revenue_at_risk",
        "raw_crm",
    ),
)


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
        elif fault.kind in ("dropped column", "null spike"):
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


class Outcome(NamedTuple):
    """The position of the true cause among the suspects, 0 if it is not among them."""

    fault: Fault
    rank: int
    report: Incident


def write_history(pipeline: Pipeline, folder: Path, seed: int) -> Path:
    """Run the nights before the fault, and return the folder of the store."""
    place = folder / pipeline.name
    with duckdb.connect(str(folder / f"{pipeline.name}.duckdb")) as db:
        events: list[bytes] = []
        for night in range(NIGHTS):
            chance = random.Random(f"{seed}{pipeline.name}{night}")
            events += Night(pipeline, db, night, chance).events()
    with Lineage.open(str(place)) as lineage:
        lineage.ingest(events)
    return place


def judge(fault: Fault, history: Path, folder: Path, seed: int) -> Outcome:
    """Run the night with a fault, and return where the report ranks its cause."""
    pipeline = PIPELINES[fault.pipeline]
    place, data = folder / "case", folder / "case.duckdb"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(history, place)
    shutil.copy(folder / f"{pipeline.name}.duckdb", data)
    chance = random.Random(f"{seed}{fault}")
    with duckdb.connect(str(data)) as db:
        events = list(Night(pipeline, db, NIGHTS, chance).events(fault))
    at = (START + dt.timedelta(days=NIGHTS, hours=5)).isoformat()
    writer = next(step.job for step in pipeline.steps if step.table == fault.table)
    causes = {str(DatasetId(NAMESPACE, fault.table)), str(JobId(JOBS, writer))}
    with Lineage.open(str(place)) as lineage:
        lineage.ingest(events)
        report = lineage.govern.incident_report(fault.symptom, at)
    ranks = [n for n, suspect in enumerate(report.suspects, 1) if suspect.id in causes]
    return Outcome(fault, ranks[0] if ranks else 0, report)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print the suspects of each miss")
    given = parser.parse_args()
    console = Console(width=150)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        histories = {p.name: write_history(p, folder, given.seed) for p in PIPELINES.values()}
        outcomes = [judge(f, histories[f.pipeline], folder, given.seed) for f in FAULTS]
    total, first, listed = Counter[str](), Counter[str](), Counter[str]()
    for outcome in outcomes:
        total[outcome.fault.kind] += 1
        first[outcome.fault.kind] += outcome.rank == 1
        listed[outcome.fault.kind] += outcome.rank > 0
        if given.show and outcome.rank != 1:
            _show(outcome, console)
    rows: list[tuple[str, ...]] = [
        (kind, str(total[kind]), str(first[kind]), str(listed[kind])) for kind in total
    ]
    rows.append(("all", *(str(sum(c.values())) for c in (total, first, listed))))
    headings = ("fault", "injected", "true cause first", "true cause among suspects")
    print_table(Table("Root causes", headings, rows), console)
    return 0


def _show(outcome: Outcome, console: Console) -> None:
    fault, report = outcome.fault, outcome.report
    console.print(f"[bold]{fault.kind}[/] of {fault.table}, seen at {fault.symptom}: "
                  f"rank {outcome.rank}, {report.status}")  # fmt: skip
    for failure in report.failures:
        console.print(f"    at the symptom: {failure.message}", markup=False)
    for suspect in report.suspects[:5]:
        console.print(f"    {suspect.score:.2f} {suspect.id}", markup=False)
        for reason in suspect.reasons:
            console.print(f"         {reason}", markup=False)


if __name__ == "__main__":
    raise SystemExit(main())
