"""The golden cases of `tests/golden/spark`: Spark jobs, and the lineage they have.

A file is a topic and the kind of session its cases run in. A case is code that is run with `spark`,
`F`, `Window`, `path` (a place of its own), `place` (that of an Iceberg table), `source` (the place
of a prepared dataset) and every prepared dataset as a DataFrame and a view. It lists every input,
output, edge and blind spot there is; what it does not list must not be there.

    edges:   one a line, `source.column -> target.column: SUBTYPE [masked] [inferred|ambiguous]`
    rows:    the same for edges that concern whole rows: `orders.day -> report.*: FILTER`
    reads:   how often rows were read without being written; null where that is Spark's affair
    tables:  what datasets are called in the catalog
    written: how many rows each output was given; `read`: how many rows were taken from an input;
             only those listed are compared
    changed: what was created, overwritten, dropped, renamed or emptied
    written_in_code: outputs of jobs whose values are all in their code
    fails:   part of the message with which the case fails

As a script it runs every case of one kind of session, in whatever PySpark its Python has, and
prints what was expected and what was found.
"""

from __future__ import annotations

import argparse
import json
import linecache
import shutil
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from downriver.capture.emit import Emitter, Spool
from downriver.capture.spark import TrackedSession
from downriver.openlineage.wire import Event, raw_bytes
from tests.spark import running_spark
from tests.spark_sources import SOURCES, prepare

if TYPE_CHECKING:
    from collections.abc import Iterable

FOLDER = Path(__file__).parent / "golden" / "spark"
_BEGUN = ("START", "RUNNING")
PLAIN, DELTA, HIVE, ICEBERG = "plain", "delta", "hive", "iceberg"


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
        """Tell whether a version of Spark has what the case uses."""
        return _numbers(version) >= _numbers(self.since)


class Topic(msgspec.Struct, forbid_unknown_fields=True):
    """One file of golden cases."""

    cases: list[Case]
    session: str = PLAIN


def load_cases(session: str = PLAIN) -> dict[str, Case]:
    """Return the golden cases of one kind of session under their file's and their own name."""
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
    """A tracked Spark session in which cases are run one after another."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self.spark = spark
        self.folder = folder
        prepare(spark, folder / "sources")
        self._events: list[Event | bytes] = []
        emitter = Emitter(self._events.extend, Spool(folder / "spool"))
        self.tracked = TrackedSession(spark, emitter, job="golden", namespace="tests")
        self._sources = {
            name: source(spark, folder / "sources") for name, source in SOURCES.items()
        }
        for view, frame in self._sources.items():
            frame.createOrReplaceTempView(view)
        self.tracked.flush()

    def run(self, name: str, case: Case) -> dict[str, Any]:
        """Run a case and return what was captured, in the words of the cases."""
        own = self.folder / "cases" / name
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir(parents=True)
        self._events.clear()
        error = ""
        # Like a notebook, so that capture can read the code of a cell.
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
        """Remove what a case left in the catalog. Spark's own methods would query, and be seen."""
        catalog = self.spark._jsparkSession.sessionState().catalog()
        for table in _each(catalog.listTables("default", "*", False)):
            catalog.dropTable(table, True, False)
        shutil.rmtree(self.folder / "iceberg", ignore_errors=True)
        for view in _each(catalog.listLocalTempViews("*")):
            if view.table() not in self._sources:
                catalog.dropTempView(view.table())
        self.spark.catalog.clearCache()


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(at) for at in range(sequence.size())]


class _Found:
    """Events in the words of the cases."""

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
        """Every run that ended once began, and every run that began ended, once."""
        began = {event["run"]["runId"] for event in events if event["eventType"] in _BEGUN}
        assert sorted(began) == sorted(event["run"]["runId"] for event in ended)

    def _failure(self, ended: list[dict[str, Any]], error: str) -> str:
        """Return the part of the message the case names, if the job and its event both have it."""
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
    """Return what a case lists."""
    return _Found([], case).expected()


def _spots(ended: list[dict[str, Any]]) -> Iterable[str]:
    for event in ended:
        for spot in event["job"]["facets"].get("downriver_blindSpots", {}).get("spots", []):
            yield spot["kind"]


def _lines(text: str) -> list[str]:
    return sorted(" ".join(line.split()) for line in text.splitlines() if line.strip())


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def run_all(session: str, folder: Path, only: str = "", jars: str = "") -> dict[str, Any]:
    """Run every case of one kind of session and return what was expected and what was found."""
    cases = {name: case for name, case in load_cases(session).items() if only in name}
    settings = {
        key: value.format(folder=folder) for key, value in _SETTINGS.get(session, {}).items()
    }
    if jars:
        settings = {**settings, "spark.jars": jars}
    found: dict[str, Any] = {}
    with running_spark(folder, settings, hive=session == HIVE) as spark:
        golden = GoldenSession(spark, folder)
        for name, case in cases.items():
            if case.runs_on(spark.version):
                try:
                    actual: object = golden.run(name, case)
                except Exception as exc:  # noqa: BLE001
                    actual = f"{type(exc).__name__}: {str(exc)[:500]}"
                found[name] = {"expected": expected(case), "actual": actual}
        version = spark.version
    return {"spark": version, "cases": found}


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
    """Return what differs between what was expected and what was found, empty if nothing does."""
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
    """Run the cases and print, as JSON or as text, what came out."""
    parser = argparse.ArgumentParser(description=textwrap.dedent(__doc__ or ""))
    parser.add_argument("--session", default=PLAIN, choices=[PLAIN, DELTA, HIVE, ICEBERG])
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
