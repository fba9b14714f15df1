"""How often an incident report ranks the true cause first, on pipelines with injected faults.

`python -m bench.root_cause [--seed 1] [--held-out] [--show]`. The SQL of a pipeline runs in DuckDB
for 28 nights on random data. Events have what an integration sees: schemas, row counts, nulls, sums
of decimals, column lineage, SQL and errors. On the last night one fault is injected into the data
or the code. Two harmless changes happen in the same night: another table gets a new column, and
the SQL of another job gets a comment. Then the incident report of the last table is created. The
cause is found if the first suspect is the dataset with the injected fault, or the job that writes
it.

The ranking was developed on the faults of `known_faults` in the pipelines churn and orders.
`--held-out` injects faults of other kinds into other pipelines.
"""

from __future__ import annotations

import argparse
import datetime as dt
import random
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import duckdb
from rich.console import Console

from bench.incidents.ads import ADS
from bench.incidents.churn import CHURN
from bench.incidents.held_out_faults import HELD_OUT_FAULTS
from bench.incidents.known_faults import KNOWN_FAULTS
from bench.incidents.night import JOBS, NAMESPACE, START, Night
from bench.incidents.orders import ORDERS
from bench.incidents.pipeline import Fault, Pipeline
from bench.incidents.stock import STOCK
from bench.report import Table, print_table
from downriver.model.governance import Incident
from downriver.model.ids import DatasetId, JobId
from downriver.service import Lineage

PIPELINES = {pipeline.name: pipeline for pipeline in (ORDERS, CHURN, ADS, STOCK)}
NIGHTS = 28


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
    parser.add_argument("--held-out", action="store_true", help="inject the held-out faults")
    parser.add_argument("--show", action="store_true", help="print the suspects of each miss")
    given = parser.parse_args()
    console = Console(width=150)
    faults = HELD_OUT_FAULTS if given.held_out else KNOWN_FAULTS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wanted = sorted({fault.pipeline for fault in faults})
        histories = {n: write_history(PIPELINES[n], folder, given.seed) for n in wanted}
        outcomes = [judge(f, histories[f.pipeline], folder, given.seed) for f in faults]
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
