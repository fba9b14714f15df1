"""Recall and false alarms of the monitor, on generated histories with injected faults.

`python -m bench.watch [--datasets 60] [--seed 1]`. It generates a history of 60 days: tables
written every day, on weekdays or every hour, with weekly seasons, growth, noise, reruns and
unrelated failures. Most tables get one injected fault, on a day after the fourth week. Then each of
the last 45 days is checked as of its end. A finding without an injected fault that explains it is a
false alarm. The same figures are checked with a simple rule for comparison: more than three
standard deviations from the mean of all earlier values.
"""

from __future__ import annotations

import argparse
import datetime as dt
import math
import random
import statistics
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
from rich.console import Console

from bench.report import Table, print_table
from downriver.govern.drift import DriftLimits, Inspector
from downriver.model.governance import Finding
from downriver.openlineage import parse_event
from downriver.openlineage.wire import parse_time
from downriver.service import Lineage

START = dt.datetime(2026, 1, 5, 1, tzinfo=dt.timezone.utc)  # a Monday
DAYS = 60
FIRST_LOOK = 15
_DAY = 86_400_000_000
_HELD = 8  # days after a fault within which a finding counts as a detection

Json = dict[str, Any]
KINDS = (
    "row_count_shift", "null_rate_shift", "distribution_shift", "run_late", "column_dropped",
    "column_renamed", "column_retyped", "column_added", "edge_appeared", "edge_vanished",
)  # fmt: skip


class Trouble(NamedTuple):
    """An injected fault: its kind, dataset and day."""

    kind: str
    dataset: str
    job: str
    day: int


class GeneratedHistory(NamedTuple):
    """A generated history of tables."""

    events: list[bytes]
    troubles: list[Trouble]
    rows: dict[str, list[tuple[int, float]]]  # by dataset: day and count
    checks: int


class _Table:
    """One table and the job that writes it."""

    def __init__(self, number: int, chance: random.Random, trouble: str | None) -> None:
        self.name, self.job = f"mart.t{number}", f"write_t{number}"
        self._chance = chance
        self.trouble = trouble
        self.day = chance.randrange(28, DAYS - 4)
        self.rhythm = "daily" if number % 4 else chance.choice(("weekdays", "hourly"))
        if trouble not in (None, "run_late") and self.rhythm == "hourly":
            self.rhythm = "daily"
        while self.rhythm == "weekdays" and self.day % 7 > 4:
            self.day += 1
        self._base = 10 ** chance.uniform(2, 6)
        self._noise = chance.uniform(0.01, 0.12)
        self._weekend = chance.choice((1.0, 1.0, 0.7, 0.4))
        self._growth = chance.choice((0.0, 0.0, 0.004, 0.01, -0.003))
        self._nulls = chance.choice((0.0, 0.01, 0.05, 0.2))
        self._mean = chance.uniform(5, 500)
        self._hour = chance.randrange(0, 6)

    def starts(self, day: int) -> Iterator[float]:
        """Yield the start hours of the runs of a day."""
        if self.rhythm == "weekdays" and day % 7 > 4:
            return
        hours = range(24) if self.rhythm == "hourly" else (self._hour,)
        for hour in hours:
            if self.trouble == "run_late" and day == self.day and (len(hours) == 1 or hour > 11):
                return
            yield hour + abs(self._chance.gauss(0, 0.05))

    def rows(self, day: int) -> float:
        """Return the number of rows that a run of a day writes."""
        season = self._weekend if day % 7 > 4 else 1.0
        usual = self._base * season * math.exp(self._growth * day)
        count = usual * math.exp(self._chance.gauss(0, self._noise))
        if self._is_wrong(day, "row_count_shift"):
            count *= self._chance.choice((0.0, 0.2, 0.4, 2.5))
        return round(count)

    def _is_wrong(self, day: int, kind: str) -> bool:
        return self.trouble == kind and day == self.day

    def columns(self, day: int) -> dict[str, str]:
        """Return the schema of a day."""
        found = {"id": "bigint", "customer_id": "bigint", "amount": "decimal(10,2)", "note": "text"}
        if day >= self.day:
            match self.trouble:
                case "column_dropped":
                    del found["note"]
                case "column_renamed":
                    found = {("cust_id" if n == "customer_id" else n): t for n, t in found.items()}
                case "column_retyped":
                    found["amount"] = "double"
                case "column_added":
                    found["channel"] = "text"
        return found

    def inputs(self, day: int) -> list[str]:
        """Return the inputs of a run of a day."""
        found = [f"raw.{self.job}", "raw.calendar"]
        if self.trouble == "edge_appeared" and day >= self.day:
            found.append("raw.extra")
        if self.trouble == "edge_vanished" and day >= self.day:
            found.remove("raw.calendar")
        return found

    def measured(self, day: int, rows: float) -> Json:
        """Return the quality figures of a run."""
        nulls = min(max(self._nulls * (1 + self._chance.gauss(0, 0.15)), 0), 1)
        if self._is_wrong(day, "null_rate_shift"):
            nulls = min(nulls + self._chance.uniform(0.1, 0.5), 1)
        mean = self._mean * (1 + self._chance.gauss(0, 0.02))
        if self._is_wrong(day, "distribution_shift"):
            mean *= self._chance.choice((0.5, 1.6))
        of_note = {"nullCount": round(nulls * rows)}
        of_amount = {"sum": mean * rows, "count": rows}
        return {"rowCount": rows, "columnMetrics": {"note": of_note, "amount": of_amount}}

    def events(self) -> Iterator[Json]:
        """Yield every event of this table."""
        for day in range(DAYS):
            for number, hour in enumerate(self.starts(day)):
                yield from self._run(day, number, hour)

    def _run(self, day: int, number: int, hour: float) -> Iterator[Json]:
        rows = self.rows(day)
        retried = self._chance.random() < 0.02
        for attempt in range(2 if retried else 1):
            begin = START + dt.timedelta(days=day, hours=hour + attempt * 0.1)
            run = f"{self.job}-{day}-{number}-{attempt}"
            failed = retried and attempt == 0
            yield self._event("START", run, begin, day, None)
            end = begin + dt.timedelta(minutes=self._chance.uniform(1, 5))
            yield self._event(
                "FAIL" if failed else "COMPLETE", run, end, day, None if failed else rows
            )

    def _event(self, state: str, run: str, at: dt.datetime, day: int, rows: float | None) -> Json:
        fields = [{"name": n, "type": t} for n, t in self.columns(day).items()]
        output: Json = {
            "namespace": "db",
            "name": self.name,
            "facets": {"schema": {"fields": fields}},
        }
        if rows is not None:
            measured = self.measured(day, rows)
            output["outputFacets"] = {
                "outputStatistics": {"rowCount": rows},
                "dataQualityMetrics": measured,
            }
        return {
            "eventType": state,
            "eventTime": at.isoformat(),
            "run": {"runId": run},
            "job": {"namespace": "etl", "name": self.job},
            "inputs": [{"namespace": "db", "name": name} for name in self.inputs(day)],
            "outputs": [output] if rows is not None else [],
        }


def make_history(datasets: int, seed: int) -> GeneratedHistory:
    """Generate a history: one of every seven tables has no fault."""
    chance = random.Random(seed)
    events: list[bytes] = []
    troubles: list[Trouble] = []
    rows: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for number in range(datasets):
        kind = None if number % 7 == 6 else KINDS[number % len(KINDS)]
        table = _Table(number, chance, kind)
        if kind is not None:
            troubles.append(
                Trouble(kind, f"dataset:db:{table.name}", f"job:etl:{table.job}", table.day)
            )
        for event in table.events():
            events.append(msgspec.json.encode(event))
            if event["outputs"]:
                count = event["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"]
                day = (parse_time(event["eventTime"], "at") - _micros(0)) // _DAY
                rows[f"dataset:db:{table.name}"].append((day, count))
    chance.shuffle(events)
    return GeneratedHistory(events, troubles, rows, datasets * 2 * (DAYS - FIRST_LOOK))


def _micros(day: float) -> int:
    return parse_time((START + dt.timedelta(days=day)).isoformat(), "day")


class Score(NamedTuple):
    """The detected faults by kind, and the false alarms."""

    put: Counter[str]
    found: Counter[str]
    false: list[Finding]
    delays: list[int]


def run_monitor_on(generated: GeneratedHistory, limits: DriftLimits) -> Score:
    """Check every day as of its end, and score the findings."""
    seen: dict[tuple[str, str], Finding] = {}
    first: dict[tuple[str, str], int] = {}
    with tempfile.TemporaryDirectory() as folder, Lineage.open(folder) as lineage:
        lineage.store.append([parse_event(event) for event in generated.events])
        for day in range(FIRST_LOOK, DAYS):
            with lineage.session.reading() as (graph, reader):
                inspector = Inspector(graph, reader, limits, _micros(day + 0.99))
                for kind in (0, 1):
                    for node in reader.history.nodes_of_kind(kind):
                        for finding in inspector.inspect(node):
                            key = (finding.id, finding.first_seen)
                            seen.setdefault(key, finding)
                            first.setdefault(key, day)
    return _score(generated, seen, first)


def _score(
    generated: GeneratedHistory,
    seen: dict[tuple[str, str], Finding],
    first: dict[tuple[str, str], int],
) -> Score:
    score = Score(Counter(t.kind for t in generated.troubles), Counter(), [], [])
    matched: set[Trouble] = set()
    for key, finding in seen.items():
        trouble = _explained_by(finding, generated.troubles)
        if trouble is None:
            if finding.kind.value != "run_failed":  # generated, too: true findings
                score.false.append(finding)
        elif finding.kind.value == trouble.kind and trouble not in matched:
            matched.add(trouble)
            score.found[trouble.kind] += 1
            score.delays.append(first[key] - trouble.day)
    return score


def _explained_by(finding: Finding, troubles: list[Trouble]) -> Trouble | None:
    at = (parse_time(finding.first_seen, "first_seen") - _micros(0)) // _DAY
    for trouble in troubles:
        here = finding.entity in (trouble.dataset, trouble.job)
        if here and trouble.day <= at <= trouble.day + _HELD:
            return trouble
    return None


def three_sigma(generated: GeneratedHistory) -> tuple[int, int]:
    """Score the simple rule on row counts: detected faults, and false alarms."""
    found = false = 0
    wrong = {(t.dataset, t.day) for t in generated.troubles if t.kind == "row_count_shift"}
    for dataset, points in generated.rows.items():
        points.sort(key=lambda point: point[0])
        for at, (day, value) in enumerate(points):
            before = [v for _, v in points[:at]]
            if day < FIRST_LOOK or len(before) < 10:
                continue
            off = abs(value - statistics.mean(before)) > 3 * statistics.stdev(before)
            if off and (dataset, day) in wrong:
                found += 1
            false += off and (dataset, day) not in wrong
    return found, false


def measure(
    datasets: int, seed: int, limits: DriftLimits | None = None
) -> tuple[Score, GeneratedHistory]:
    """Return the score over one generated history."""
    generated = make_history(datasets, seed)
    return run_monitor_on(generated, limits or DriftLimits()), generated


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.watch", description=__doc__)
    parser.add_argument("--datasets", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--false-alarms", action="store_true", help="list them")
    arguments = parser.parse_args()
    score, generated = measure(arguments.datasets, arguments.seed)
    rows = [
        (
            kind,
            str(put),
            str(score.found[kind]),
            str(sum(f.kind.value == kind for f in score.false)),
        )
        for kind, put in sorted(score.put.items())
    ]
    others = Counter(f.kind.value for f in score.false if f.kind.value not in score.put)
    rows += [(kind, "0", "–", str(count)) for kind, count in sorted(others.items())]
    total, found = sum(score.put.values()), sum(score.found.values())
    rate = 1000 * len(score.false) / generated.checks
    rows.append(
        ("all", str(total), f"{found} ({found / total:.0%})", f"{len(score.false)} ({rate:.2f} ‰)")
    )
    notes = (
        f"{len(generated.events):,} events of {arguments.datasets} tables over {DAYS} days; "
        f"{generated.checks:,} checks (a table or job on a day). False alarms: per 1,000 checks.",
    )
    console = Console(width=120)
    print_table(
        Table("The monitor", ("kind", "put there", "found", "false alarms"), rows, notes), console
    )
    theirs, false_alarms = three_sigma(generated)
    ours = [f for f in score.false if f.kind.value == "row_count_shift"]
    side = [
        ("downriver", str(score.found["row_count_shift"]), str(len(ours))),
        ("three standard deviations", str(theirs), str(false_alarms)),
    ]
    put = score.put["row_count_shift"]
    print_table(
        Table(f"Row counts: {put} injected shifts", ("rule", "found", "false alarms"), side),
        console,
    )
    if arguments.false_alarms:
        for finding in score.false:
            console.print(f"{finding.entity} {finding.first_seen}: {finding.message} {finding.why}")


if __name__ == "__main__":
    main()
