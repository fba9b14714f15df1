"""The texts that capture reads of every query, each in one round trip to the JVM."""

from __future__ import annotations

import functools
import re
from importlib import resources
from typing import TYPE_CHECKING, Any, NamedTuple

from downriver.capture.spark.actions import IoStatistics
from downriver.capture.spark.java import ids_in

if TYPE_CHECKING:
    from downriver.capture.spark.java import Java

_BREAK = "\x01"
_PART = "\x02"
_CLASS = "PlanText"
_UNLIMITED = 2**31 - 1
# The parts of `plan`. Only JSON has no control characters: the tree has the literals of the query,
# and Hive's delimiters are the same characters as ours.
_JSON_PARTS = re.compile(
    r"\x02((?:\{[^\x02]*\})?)(?=\x02((?:\[[^\x02]*\])?)\x02([^\x02]*)\x02)", re.DOTALL
)
_METRIC = re.compile(r"\b(\w+) -> SQLMetric\((?:(?!SQLMetric\().)*?value: (-?\d+)\)")


class LeafText(NamedTuple):
    """A leaf of a plan: the simple name of its class, and its text, which contains column ids."""

    kind: str
    text: str


class PlanText(NamedTuple):
    """A plan as text. `json` is empty for a plan that is too large, or with an `error`."""

    columns: list[int]
    tree: str
    schema: str
    json: str
    error: str
    leaves: list[LeafText]
    has_subqueries: bool

    @property
    def operators(self) -> int:
        """The number of operators."""
        return self.tree.count("\n")


class FileWrite(NamedTuple):
    """A command that writes files."""

    has_table: bool
    path: str
    format: str
    mode: str
    columns: list[str]


class PlanTextReader:
    """Reads plans of one JVM as text."""

    def __init__(self, gateway: Java) -> None:
        self._java = compile_class(gateway, _CLASS).newInstance()

    def plan(
        self, query: Java, *, merged: bool, largest: int, widest: int | None = None
    ) -> PlanText:
        """Return a plan; `merged`: with as few projections as possible.

        A plan with `widest` columns or more contains only its columns.
        """
        text = str(self._java.plan(query, merged, largest, widest or _UNLIMITED))
        output, separator, rest = text.partition(_PART)
        parts = _JSON_PARTS.search(rest)
        if not separator or parts is None:
            raise ValueError("the text of a plan has other parts than expected")
        tree, (schema, json, error) = rest[: parts.start()], parts.groups()
        leaves, _, no_subqueries = rest[parts.end(3) + 1 :].rpartition(_PART)
        plan_leaves = [leaf.partition(" ") for leaf in leaves.split(_BREAK) if leaf]
        return PlanText(
            columns=ids_in(output.split(_BREAK)),
            tree=tree,
            schema=schema,
            json=json,
            error=error.partition("\n")[0],
            leaves=[LeafText(name.rpartition(".")[2], text) for name, _, text in plan_leaves],
            has_subqueries=no_subqueries != "true",
        )

    def file_write(self, command: Java) -> FileWrite:
        """Return the target and columns of a command that writes files."""
        has_table, path, form, mode, columns = str(self._java.files(command)).split(_PART)
        names = columns.split(_BREAK) if columns else []
        return FileWrite(has_table == "true", path, form.rpartition(".")[2], mode, names)

    def counts(self, executed: Java) -> tuple[IoStatistics, dict[int, IoStatistics]]:
        """Return the counts of a command's write, and of each scan, by the ids of its columns."""
        own, *scans = str(self._java.counts(executed)).split(_PART)
        read: dict[int, IoStatistics] = {}
        for output, metrics in zip(scans[::2], scans[1::2], strict=True):
            statistics = _statistics(metrics, size="filesSize")
            for column in ids_in(output.split(_BREAK)):
                read.setdefault(column, statistics)
        return _statistics(own, size="numOutputBytes"), read


def _statistics(metrics: str, *, size: str) -> IoStatistics:
    counted = {name: int(value) for name, value in _METRIC.findall(metrics)}
    return IoStatistics(counted.get("numOutputRows"), counted.get(size), counted.get("numFiles"))


@functools.lru_cache(maxsize=8)
def compile_class(gateway: Any, name: str) -> Java:
    """Compile a class of this package in the JVM, with the compiler that Spark uses for queries."""
    source = resources.files("downriver.capture.spark").joinpath(f"{name}.java")
    jvm = gateway.jvm
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    spark = jvm.org.apache.spark.SparkContext.getOrCreate()
    compiler.setParentClassLoader(spark.getClass().getClassLoader())
    compiler.cook(source.read_text("utf-8"))
    return compiler.getClassLoader().loadClass(f"downriver.{name}")
