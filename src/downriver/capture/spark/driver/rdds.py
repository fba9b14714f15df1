"""Follows actions that query listeners do not receive: actions of RDDs, and `foreach`."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec

from downriver.capture.emit import guarded
from downriver.capture.spark.actions import DatasetLocation, PlanLeaf, Sink, SparkAction
from downriver.capture.spark.driver.frames import frame_class
from downriver.capture.spark.driver.patches import OutermostCall, follower_of, patch_once
from downriver.capture.spark.driver.user_code import is_library
from downriver.capture.spark.io.sources import RddFiles
from downriver.capture.spark.plan.lineage import read_relation

if TYPE_CHECKING:
    from collections.abc import Callable

    from downriver.capture.frame_origins import Origins
    from downriver.capture.spark.java import Java
    from downriver.capture.spark.publisher import ActionPublisher
    from downriver.columns import Deps
    from downriver.model.ids import DatasetId

_KIND = "rdd"
_SAVES = {
    "saveAsTextFile": "text", "saveAsPickleFile": "pickle", "saveAsSequenceFile": "sequence",
    "saveAsHadoopFile": "hadoop", "saveAsNewAPIHadoopFile": "hadoop",
}  # fmt: skip
_SAVES_ANYWHERE = ("saveAsHadoopDataset", "saveAsNewAPIHadoopDataset")
_CODE = ("foreach", "foreachPartition")
_READS = (
    "aggregate", "collect", "collectAsMap", "count", "countByKey", "countByValue", "first", "fold",
    "isEmpty", "lookup", "max", "min", "reduce", "stats", "sum", "take", "takeOrdered",
    "takeSample", "toLocalIterator", "top", "treeAggregate", "treeReduce",
)  # fmt: skip
_COLUMN = -1  # the id of the one column of a written RDD


class RddActions:
    """The actions of an application's RDDs."""

    def __init__(self, capture: ActionPublisher, name_path: Callable[[str], DatasetId]) -> None:
        self._capture = capture
        self._name_path = name_path
        _patch()

    def add(self, name: str, rdd: Java, path: str | None, started: float, error: str) -> None:
        """Publish an action of an RDD, after the queries that ended before it."""
        now = time.time()
        action = SparkAction(
            name=name,
            ended_at=int(now * 1_000_000),
            duration_ns=int((now - started) * 1_000_000_000),
            columns=[],
            error=error,
        )

        def publish() -> None:
            self._read(action, rdd, path)
            self._capture.publish(action)

        self._capture.later(publish)

    def origins_of(self, rdd: Java) -> Deps:
        """Return the origins of the rows of an RDD: every column that it was made from."""
        action = SparkAction(name="", ended_at=0, duration_ns=0, columns=[_COLUMN], plan=_PLAN)
        action.leaves = [_leaf(rdd)]
        (column,) = read_relation(action, self._capture.known).columns
        return column.deps

    def _read(self, action: SparkAction, rdd: Java, path: str | None) -> None:
        action.leaves = [_leaf(rdd)]
        if path is not None:
            place = DatasetLocation(self._name_path(path), None, _SAVES[action.name])
            action.sink = Sink(place, ["value"])
            action.plan = _PLAN
            action.schema = _SCHEMA
        elif action.name in _SAVES_ANYWHERE:
            action.unknown_write = f"the call {action.name} of an RDD"
        elif action.name in _CODE:
            action.unknown_write = f"the user code of {action.name}"


def _leaf(rdd: Java) -> PlanLeaf:
    files = RddFiles()
    files.read(rdd)
    return PlanLeaf(
        _COLUMN,
        list(files.scanned),
        rdd=int(rdd.id()),
        scanned=files.scanned,
        unknown=files.unknown,
    )


_PLAN = msgspec.json.encode(
    [
        {
            "class": "LogicalRDD",
            "num-children": 0,
            "output": [
                [
                    {
                        "class": "AttributeReference",
                        "num-children": 0,
                        "name": "value",
                        "exprId": {"id": _COLUMN},
                    }
                ]
            ],
        }
    ]
).decode()
_SCHEMA = '{"type":"struct","fields":[{"name":"value","type":"string"}]}'


def _patch() -> None:
    from pyspark import RDD

    for method in (*_SAVES, *_SAVES_ANYWHERE, *_CODE, *_READS):
        patch_once(RDD, method, _following)
    for method in (*_CODE, "toLocalIterator"):
        patch_once(frame_class(), method, _following)


def _following(plain: Callable[..., Any]) -> Callable[..., Any]:
    def followed(self: Any, *args: Any, **kwargs: Any) -> Any:
        started, failure = time.time(), "failed"
        with OutermostCall(_KIND) as call:
            try:
                result = plain(self, *args, **kwargs)
                failure = ""
            finally:
                if call.is_outermost and not is_library(sys._getframe(1)):
                    with guarded("following an RDD"):
                        failure = failure and str(sys.exc_info()[1])
                        _add(self, plain.__name__, args, kwargs, started, failure)
                        if not failure:
                            _store(self, result)
            return result

    return followed


def _store(rows: Any, result: Any) -> None:
    """Store the values of a result, which later queries may contain."""
    context = getattr(rows, "context", None)  # a frame has none: its rows come one by one
    follower = None if context is None else follower_of(context)
    values = list(result.items()) if isinstance(result, dict) else result
    values = values if isinstance(values, list) else [values]
    if follower is None or not values or _is_iterator(result):
        return
    table = [value if isinstance(value, tuple) else (value,) for value in values]
    width = min(len(row) for row in table)
    names = list(getattr(table[0], "__fields__", ()))[:width]
    names += [f"_{at}" for at in range(len(names) + 1, width + 1)]
    rdd = _before_python(rows)
    actions = follower.rdds

    def origins() -> Origins:
        return dict.fromkeys(names, actions.origins_of(rdd))

    follower.rows.values.add(names, table, origins)


def _is_iterator(result: Any) -> bool:
    return result is None or hasattr(result, "__next__")


def _before_python(rows: Any) -> Java:
    """Return the RDD before the Python functions, which the RDD itself would pickle again."""
    java = getattr(rows, "_prev_jrdd", None) or rows._jrdd
    return java.rdd()


def _add(
    rows: Any, method: str, args: Any, kwargs: dict[str, Any], started: float, error: str
) -> None:
    is_frame = hasattr(rows, "_jdf")
    context = rows.sparkSession.sparkContext if is_frame else rows.context
    follower = follower_of(context)
    if follower is None:
        return
    path = None
    if method in _SAVES:
        path = str(args[0] if args else kwargs["path"])
    rdd = _before_python(rows.rdd if is_frame else rows)
    follower.rdds.add(method, rdd, path, started, error)
