"""The golden cases of `tests/golden/spark`: Spark jobs and their lineage.

A file has the cases of one topic and one kind of session. A case is code that runs with `spark`,
`F`, `Window`, `path` (a new folder), `place` (that of an Iceberg table), `source` (the place
of a prepared dataset) and every prepared dataset as a DataFrame and a view. It lists every input,
output, edge and blind spot. There must be no others.

    edges:   one for each line, `source.column -> target.column: SUBTYPE [masked]
             [inferred|ambiguous]`
    rows:    the same for edges that concern whole rows: `orders.day -> report.*: FILTER`
    reads:   the number of reads without a write; null if it depends on Spark
    tables:  the names of datasets in the catalog
    written: the number of rows written to each output; `read`: the number of rows read from an
             input; other inputs and outputs are not compared
    changed: what was created, overwritten, dropped, renamed or emptied
    written_in_code: outputs of jobs whose values are all in their code
    fails:   part of the message with which the case fails

As a script, it runs every case of one kind of session in the PySpark of its Python, and prints the
expected and the actual lineage.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import json
import linecache
import os
import shutil
import signal
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from downriver.capture.emit import Emitter, Spool
from downriver.capture.spark import TrackedConnectSession, TrackedSession
from downriver.openlineage.wire import Event, raw_bytes
from tests.spark import running_connect, running_spark
from tests.spark_sources import SOURCES, prepare

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = Path(__file__).parent / "golden" / "spark"
# Cases that a client of Spark Connect cannot run, and cases with less lineage: why.
_NO_JVM = "the client has no JVM: no SparkContext, RDDs or newSession"
_EXPLAINED = "the text of a plan has less than the plan"
_ML = "models of Spark's ML library are not followed"
CONNECT_DIFFERENCES = {
    "accounted/a_new_session": _NO_JVM,
    "accounted/rows_of_files_through_rdds": _NO_JVM,
    "accounted/what_spark_reads_for_itself_is_no_run": _NO_JVM,
    "driver/collected_from_rdds": _NO_JVM,
    "driver/data_from_elsewhere": _NO_JVM,
    "driver/for_each_row": _NO_JVM,
    "driver/rows_that_come_one_by_one": _NO_JVM,
    "driver/rdds_that_are_saved": _NO_JVM,
    "driver/an_rdd_that_cannot_be_saved": _NO_JVM,
    "python/checkpoints_keep_their_columns": _NO_JVM,
    "python/rows_that_go_through_python": _NO_JVM,
    "python/lines_that_go_through_python": _NO_JVM,
    "accounted/a_glob_of_written_folders": "the text names the folder above the glob",
    "driver/collected_by_other_calls": "count is not followed",
    "models/a_model_is_one_dataset": _ML,
    "models/a_pipeline_is_saved_and_loaded": _ML,
    "models/a_search_is_one_fit": _ML,
    "nested/a_struct_built_and_taken_apart": _EXPLAINED,
    "python/pandas_functions": _EXPLAINED,
    "python/a_checkpoint_beside_what_it_was_made_from": "a checkpoint is an unknown source",
    "sets/a_union_that_widens_changes_no_value": _EXPLAINED,
    "sinks/terminal_reads": "Spark Connect runs fewer queries",
    "streams/a_stream_of_files": "the plan of a stream cannot be explained",
    "streams/for_each_batch": "the code runs on the server",
    "streams/rows_of_a_clock": "the plan of a stream cannot be explained",
    "streams/for_each_row": "the plan of a stream cannot be explained",
    "subqueries/with_that_calls_itself": _EXPLAINED,
    "tables/one_select_into_two_tables": "only the tables of a multi-insert are known",
}
_BEGUN = ("START", "RUNNING")
# A case takes about a second, and half a minute on a machine with too much to do.
SECONDS_OF_A_CASE = 300.0
HUNG = 3  # exit status if a case takes longer
PLAIN, DELTA, HIVE, ICEBERG, KAFKA = "plain", "delta", "hive", "iceberg", "kafka"
CONNECT = "connect"  # the cases of plain sessions, in a client of Spark Connect


class Case(msgspec.Struct, forbid_unknown_fields=True):
    """One golden case."""

    name: str
    code: str
    since: str = "3.5"
    inputs: list[str] = []
    outputs: list[str] = []
    edges: str = ""
    rows: str = ""
    reads: int | None = 0
    tables: dict[str, str] = {}
    written: dict[str, int] = {}
    read: dict[str, int] = {}
    changed: dict[str, list[str]] = {}
    blind_spots: list[str] = []
    written_in_code: list[str] = []
    fails: str = ""

    def runs_on(self, version: str) -> bool:
        """Return whether a version of Spark supports the case."""
        return _numbers(version) >= _numbers(self.since)


class Topic(msgspec.Struct, forbid_unknown_fields=True):
    """One file of golden cases."""

    cases: list[Case]
    session: str = PLAIN


def load_cases(session: str = PLAIN) -> dict[str, Case]:
    """Return the golden cases of one kind of session, named by file and case."""
    found: dict[str, Case] = {}
    for path in sorted(FOLDER.glob("*.yml")):
        topic = msgspec.convert(yaml.safe_load(path.read_text("utf-8")), Topic)
        for case in topic.cases:
            name = f"{path.stem}/{case.name}"
            assert name not in found, f"two cases are called {name}"
            if topic.session == session:
                found[name] = case
    return found


class GoldenSession:
    """A tracked Spark session that runs cases one after another."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        prepare(spark, folder / "sources")
        self._events: list[Event | bytes] = []
        emitter = Emitter(self._events.extend, Spool(folder / "spool"))
        kind = TrackedConnectSession if is_connect(spark) else TrackedSession
        self.tracked = kind(spark, emitter, job="golden", namespace="tests")
        self._sources = {
            name: source(spark, folder / "sources") for name, source in SOURCES.items()
        }
        for view, frame in self._sources.items():
            frame.createOrReplaceTempView(view)
        self.tracked.flush()

    def run(self, name: str, case: Case) -> dict[str, Any]:
        """Run a case and return the captured lineage in the notation of the cases."""
        own = self.folder / "cases" / name
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir(parents=True)
        self._events.clear()
        error = ""
        # As in a notebook, so that capture can read the code of a cell.
        linecache.cache[name] = (len(case.code), None, case.code.splitlines(keepends=True), name)
        try:
            exec(compile(case.code, name, "exec"), self._names(own))
        except Exception as exc:
            error = str(exc)
            if not case.fails:
                raise
        self.tracked.flush()
        events = [msgspec.json.decode(raw_bytes(event)) for event in self._events]
        self._tidy()
        del linecache.cache[name]
        roots = [own, self.folder / "sources", self.folder]
        return _Found(roots, case).answer(events, error)

    def _names(self, own: Path) -> dict[str, Any]:
        from pyspark.sql import Window
        from pyspark.sql import functions as functions

        return {
            **self._sources,
            "spark": self.spark,
            "tracked": self.tracked,
            "F": functions,
            "Window": Window,
            "place": lambda *parts: str(self.folder.joinpath("iceberg", *parts)),
            "path": lambda *parts: str(own.joinpath(*parts)),
            "source": lambda *parts: str(self.folder.joinpath("sources", *parts)),
        }

    def _tidy(self) -> None:
        """Remove the tables of a case from the catalog.

        Methods of Spark would run queries, which capture records.
        """
        if is_connect(self.spark):
            self._tidy_connect()
            return
        catalog = self.spark._jsparkSession.sessionState().catalog()
        for table in _each(catalog.listTables("default", "*", False)):
            catalog.dropTable(table, True, False)
        shutil.rmtree(self.folder / "iceberg", ignore_errors=True)
        for view in _each(catalog.listLocalTempViews("*")):
            if view.table() not in self._sources:
                catalog.dropTempView(view.table())
        self.spark.catalog.clearCache()

    def _tidy_connect(self) -> None:
        for table in self.spark.sql("SHOW TABLES").collect():
            if table.tableName not in self._sources:
                for kind in ("TABLE", "VIEW"):
                    with contextlib.suppress(Exception):
                        self.spark.sql(f"DROP {kind} IF EXISTS `{table.tableName}`")
        shutil.rmtree(self.folder / "warehouse", ignore_errors=True)
        self.tracked.flush()
        self._events.clear()


def is_connect(spark: Any) -> bool:
    """Return whether a session is a client of Spark Connect."""
    return ".connect." in type(spark).__module__


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(at) for at in range(sequence.size())]


class _Found:
    """Events in the notation of the cases."""

    def __init__(self, roots: list[Path], case: Case) -> None:
        self._roots = [f"{root}/" for root in roots]
        self._case = case

    def answer(self, events: list[dict[str, Any]], error: str) -> dict[str, Any]:
        ended = [event for event in events if event["eventType"] not in _BEGUN]
        self._check_starts(events, ended)
        outputs = [each for event in ended for each in event["outputs"]]
        inputs = [each for event in ended for each in event["inputs"]]
        return {
            "inputs": sorted({self._name(each) for each in inputs}),
            "outputs": sorted({self._name(each) for each in outputs}),
            "edges": sorted(set(self._edges(outputs))),
            "rows": sorted(set(self._rows(outputs))),
            "reads": None
            if self._case.reads is None
            else sum(not event["outputs"] for event in ended),
            "tables": self._tables([*inputs, *outputs]),
            "written": self._counted(outputs, "outputFacets", self._case.written),
            "read": self._counted(inputs, "inputFacets", self._case.read),
            "changed": self._changed(outputs),
            "blind_spots": sorted(set(_spots(ended))),
            "written_in_code": sorted(self._written(ended)),
            "fails": self._failure(ended, error),
        }

    def expected(self) -> dict[str, Any]:
        case = self._case
        return {
            "inputs": sorted(case.inputs),
            "outputs": sorted(case.outputs),
            "edges": _lines(case.edges),
            "rows": _lines(case.rows),
            "reads": case.reads,
            "tables": case.tables,
            "written": case.written,
            "read": case.read,
            "changed": {kind: sorted(names) for kind, names in case.changed.items()},
            "blind_spots": sorted(case.blind_spots),
            "written_in_code": sorted(case.written_in_code),
            "fails": case.fails,
        }

    def _check_starts(self, events: list[dict[str, Any]], ended: list[dict[str, Any]]) -> None:
        """Check that every run started once and ended once."""
        began = {event["run"]["runId"] for event in events if event["eventType"] in _BEGUN}
        assert sorted(began) == sorted(event["run"]["runId"] for event in ended)

    def _failure(self, ended: list[dict[str, Any]], error: str) -> str:
        """Return the expected part of the message, if both the job and its event contain it."""
        told = [
            event["run"]["facets"]["errorMessage"]["message"]
            for event in ended
            if event["eventType"] == "FAIL"
        ]
        wanted = self._case.fails
        if wanted and wanted in error and any(wanted in message for message in told):
            return wanted
        return " | ".join([error, *told]) if error or told else ""

    def _name(self, dataset: dict[str, Any]) -> str:
        return self._short(dataset["namespace"], dataset["name"])

    def _short(self, namespace: str, name: str) -> str:
        full = name if namespace == "file" else f"{namespace}:{name}"
        for root in self._roots:
            full = full.replace(f"file:{root}", "").replace(root, "")
        return full

    def _edges(self, outputs: list[dict[str, Any]]) -> Iterable[str]:
        for output in outputs:
            lineage = output["facets"].get("columnLineage", {})
            for column, field in lineage.get("fields", {}).items():
                yield from self._arrows(field["inputFields"], f"{self._name(output)}.{column}")

    def _rows(self, outputs: list[dict[str, Any]]) -> Iterable[str]:
        for output in outputs:
            lineage = output["facets"].get("columnLineage", {})
            yield from self._arrows(lineage.get("dataset", []), f"{self._name(output)}.*")

    def _written(self, ended: list[dict[str, Any]]) -> Iterable[str]:
        for event in ended:
            if event["job"]["facets"].get("jobType", {}).get("jobType") == "SEED":
                yield from map(self._name, event["outputs"])

    def _arrows(self, fields: list[dict[str, Any]], target: str) -> Iterable[str]:
        for field in fields:
            start = f"{self._short(field['namespace'], field['name'])}.{field['field']}"
            for how in field["transformations"]:
                sure = how["confidence"]
                marks = ["masked"] * how["masking"] + [sure] * (sure != "exact")
                yield " ".join([f"{start} -> {target}: {how['subtype']}", *marks])

    def _tables(self, datasets: list[dict[str, Any]]) -> dict[str, str]:
        return {
            self._name(dataset): symlink["name"]
            for dataset in datasets
            for symlink in dataset.get("facets", {}).get("symlinks", {}).get("identifiers", [])
        }

    def _counted(
        self, datasets: list[dict[str, Any]], role: str, wanted: dict[str, int]
    ) -> dict[str, int | None]:
        facet = role.replace("Facets", "Statistics")
        found: dict[str, int | None] = {}
        for dataset in datasets:
            name = self._name(dataset)
            rows = dataset.get(role, {}).get(facet, {}).get("rowCount")
            if name in wanted and rows is not None:
                found[name] = rows + (found.get(name) or 0)
        return {name: found.get(name) for name in wanted}

    def _changed(self, outputs: list[dict[str, Any]]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for output in outputs:
            change = output["facets"].get("lifecycleStateChange")
            if change is not None:
                name = self._name(output)
                if before := change.get("previousIdentifier"):
                    name = f"{self._name(before)} -> {name}"
                found.setdefault(change["lifecycleStateChange"], []).append(name)
        return {kind: sorted(names) for kind, names in found.items()}


def expected(case: Case) -> dict[str, Any]:
    """Return the expected lineage of a case."""
    return _Found([], case).expected()


def _spots(ended: list[dict[str, Any]]) -> Iterable[str]:
    for event in ended:
        for spot in event["job"]["facets"].get("downriver_blindSpots", {}).get("spots", []):
            yield spot["kind"]


def _lines(text: str) -> list[str]:
    return sorted(" ".join(line.split()) for line in text.splitlines() if line.strip())


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


class Watchdog:
    """Ends the process if a case hangs, and prints where Python and the JVM are."""

    def __init__(self, seconds: float = SECONDS_OF_A_CASE) -> None:
        self._seconds = seconds
        self._timer: threading.Timer | None = None

    def __enter__(self) -> Watchdog:
        self.begin("the start of the session")
        return self

    def __exit__(self, *_: object) -> None:
        self._cancel()

    def begin(self, name: str) -> None:
        """Begin a case; the one before has ended."""
        self._cancel()
        self._timer = threading.Timer(self._seconds, self._end_process, [name])
        self._timer.daemon = True
        self._timer.start()

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _end_process(self, name: str) -> None:
        print(f"{name} did not end within {self._seconds:g} seconds", file=sys.stderr, flush=True)
        faulthandler.dump_traceback(all_threads=True)
        with contextlib.suppress(Exception):
            from pyspark import SparkContext

            os.kill(SparkContext._gateway.proc.pid, signal.SIGQUIT)  # prints its threads
            time.sleep(5)
        os._exit(HUNG)


def run_all(session: str, folder: Path, only: str = "", jars: str = "") -> dict[str, Any]:
    """Run every case of one kind of session, and return the expected and the actual lineage."""
    kind = PLAIN if session == CONNECT else session
    cases = {name: case for name, case in load_cases(kind).items() if only in name}
    if session == CONNECT:
        cases = {
            name: case for name, case in cases.items() if CONNECT_DIFFERENCES.get(name) != _NO_JVM
        }
    settings = {
        key: value.format(folder=folder) for key, value in _SETTINGS.get(session, {}).items()
    }
    if jars:
        settings = {**settings, "spark.jars": jars}
    found: dict[str, Any] = {}
    opened = (
        running_connect(folder)
        if session == CONNECT
        else running_spark(folder, settings, hive=session == HIVE)
    )
    with Watchdog() as watchdog, opened as spark:
        golden = GoldenSession(spark, folder)
        for name, case in cases.items():
            if case.runs_on(spark.version):
                watchdog.begin(name)
                try:
                    actual: object = golden.run(name, case)
                except Exception as exc:  # noqa: BLE001
                    actual = f"{type(exc).__name__}: {str(exc)[:500]}"
                found[name] = {"expected": expected(case), "actual": actual}
                if session == CONNECT:
                    _without_counts(found[name])
        watchdog.begin("the end of the session")
        version = spark.version
    return {"spark": version, "cases": found}


def _without_counts(both: dict[str, Any]) -> None:
    """Remove row counts, because a client of Spark Connect does not receive them."""
    for answer in both.values():
        if isinstance(answer, dict):
            answer["written"], answer["read"] = {}, {}


_SETTINGS = {
    DELTA: {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    },
    ICEBERG: {
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        "spark.sql.catalog.local": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.local.type": "hadoop",
        "spark.sql.catalog.local.warehouse": "{folder}/iceberg",
        "spark.sql.catalog.local.cache-enabled": "false",
    },
}


def show_difference(name: str, both: dict[str, Any]) -> str:
    """Return the difference between expected and actual lineage, empty if there is none."""
    wanted, actual = both["expected"], both["actual"]
    if not isinstance(actual, dict):
        return f"{name}: {actual}"
    lines = []
    for key, value in wanted.items():
        if isinstance(value, list):
            lines += [f"  {key}: missing {item}" for item in value if item not in actual[key]]
            lines += [f"  {key}: too much {item}" for item in actual[key] if item not in value]
        elif value != actual[key]:
            lines.append(f"  {key}: expected {value!r}, found {actual[key]!r}")
    return "\n".join([name, *lines]) if lines else ""


def main() -> int:
    """Run the cases and print the results as JSON or text."""
    parser = argparse.ArgumentParser(description=textwrap.dedent(__doc__ or ""))
    parser.add_argument(
        "--session", default=PLAIN, choices=[PLAIN, DELTA, HIVE, ICEBERG, KAFKA, CONNECT]
    )
    parser.add_argument("--only", default="", help="run only cases whose name contains this")
    parser.add_argument("--jars", default="", help="jars that the session needs, with commas")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="downriver-spark-") as folder:
        result = run_all(options.session, Path(folder).resolve(), options.only, options.jars)
    differences = [show_difference(*item) for item in result["cases"].items()]
    if options.json:
        json.dump(result, sys.stdout)
    else:
        print(*filter(None, differences), sep="\n")
        print(
            f"Spark {result['spark']}: {len(differences)} cases, "
            f"{sum(map(bool, differences))} differ"
        )
    return 1 if any(differences) else 0


if __name__ == "__main__":
    sys.exit(main())
