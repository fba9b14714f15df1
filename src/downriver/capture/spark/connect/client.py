"""A client of Spark Connect: the requests of capture, and those of the user's code.

Each session of a process has a client. The methods of clients are wrapped once, and call the
observer, if one is set.
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any, Protocol

from downriver.capture.spark.connect.own_calls import SECONDS_TO_ANSWER, is_own_call, own_call
from downriver.capture.spark.driver.patches import OutermostCall, patch_once

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from downriver.capture.spark.connect.driver_data import DriverData

_PYSPARK = "pyspark."
_CALL = "a request to Spark Connect"
# By default, a plan prints at most 25 columns, and the first 100 characters of a path.
_PRINT_SETTINGS = {
    "spark.sql.debug.maxToStringFields": "100000",
    "spark.sql.maxMetadataStringLength": "100000",
}


class RequestObserver(Protocol):
    """Follows the requests of a process. It never raises."""

    data: DriverData

    def before(self, client: Any, request: Any, name: str) -> Callable[[str], None] | None:
        """Take a command or plan. Return a function to call with its error, or "" for no error.

        `name` is the method of PySpark that the user's code called.
        """


class _Observed:
    """The observer of this process."""

    observer: RequestObserver | None = None


def observe(observer: RequestObserver | None) -> None:
    """Follow every request of this process; None ends it."""
    from pyspark.sql.connect.client import SparkConnectClient

    _Observed.observer = observer
    for method in ("execute_command", "to_table", "to_pandas"):
        patch_once(SparkConnectClient, method, _following)
    for method in ("execute_command_as_iterator", "to_table_as_iterator"):
        patch_once(SparkConnectClient, method, _following_iterator)


def observer() -> RequestObserver | None:
    """Return the observer, unless the current call is one of capture itself."""
    return None if is_own_call() else _Observed.observer


def _following(method: Callable[..., Any]) -> Callable[..., Any]:
    def followed(self: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        with OutermostCall(_CALL) as call:
            ended = _begin(self, request) if call.is_outermost else None
            try:
                result = method(self, request, *args, **kwargs)
            except BaseException as exc:
                _end(ended, f"{type(exc).__name__}: {exc}")
                raise
            _end(ended, "")
            return result

    return followed


def _following_iterator(method: Callable[..., Any]) -> Callable[..., Any]:
    def followed(self: Any, request: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        ended = _begin(self, request)
        try:
            yield from method(self, request, *args, **kwargs)
        except GeneratorExit:  # the user's code stopped reading
            _end(ended, "")
            raise
        except BaseException as exc:
            _end(ended, f"{type(exc).__name__}: {exc}")
            raise
        _end(ended, "")

    return followed


def _begin(client: Any, request: Any) -> Callable[[str], None] | None:
    active = observer()
    return None if active is None else active.before(client, request, _called_method())


def _end(ended: Callable[[str], None] | None, error: str) -> None:
    if ended is not None:
        ended(error)


def _called_method() -> str:
    """Return the method of PySpark that the user's code called: `count`, `saveAsTable`."""
    frame, name = sys._getframe(1), ""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.startswith(_PYSPARK):
            name = frame.f_code.co_name
        elif name:
            break
        frame = frame.f_back  # type: ignore[assignment]
    return name or "collect"


class ConnectServer:
    """Requests of capture itself to the server of one client. They have a deadline."""

    def __init__(self, client: Any, seconds: float = SECONDS_TO_ANSWER) -> None:
        self._client = client
        self._seconds = seconds
        self._before: dict[str, str] | None = None

    def explain(self, plan: Any) -> str:
        """Return the plans of a query as text."""
        with own_call(self._client, self._seconds):
            self._print_whole_plans()
            return str(self._client.explain_string(plan, explain_mode="extended"))

    def rows(self, query: str) -> list[dict[str, Any]]:
        """Return the rows of a SQL query that changes nothing, such as DESCRIBE."""
        from pyspark.sql.connect.proto import Plan, Relation
        from pyspark.sql.connect.proto.relations_pb2 import SQL

        return self.query(Plan(root=Relation(sql=SQL(query=query))))

    def query(self, plan: Any) -> list[dict[str, Any]]:
        """Return the rows of a plan that changes nothing."""
        to_table = self._client.to_table
        needs_observations = len(inspect.signature(to_table).parameters) > 1  # since Spark 4
        with own_call(self._client, self._seconds):
            self._print_whole_plans()
            table = to_table(plan, {}) if needs_observations else to_table(plan)
        rows: list[dict[str, Any]] = table[0].to_pylist()
        return rows

    def setting(self, name: str) -> str:
        """Return a setting of the session; empty if it has none."""
        with own_call(self._client, self._seconds):
            return str(self._conf().get(name, "") or "")

    def leave(self) -> None:
        """Restore the settings of the session."""
        before, self._before = self._before, None
        with own_call(self._client, self._seconds):
            for name, value in (before or {}).items():
                self._conf().set(name, value)

    def _print_whole_plans(self) -> None:
        if self._before is None:
            conf = self._conf()
            self._before = {name: str(conf.get(name)) for name in _PRINT_SETTINGS}
            for name, value in _PRINT_SETTINGS.items():
                conf.set(name, value)

    def _conf(self) -> Any:
        from pyspark.sql.connect.conf import RuntimeConf

        return RuntimeConf(self._client)
