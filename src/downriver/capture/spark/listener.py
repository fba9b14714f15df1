"""Spark's listener for queries, in Python: py4j calls it when a query ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from downriver.capture.spark.java import Java

if TYPE_CHECKING:
    from collections.abc import Callable

    Report = Callable[[str, Java, int, Java | None], None]

_ANSWER_SECONDS = 5.0


class QueryListener:
    """Passes on what Spark reports: the action, its execution, its nanoseconds, its error."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def onSuccess(self, action: str, execution: Java, duration_ns: int) -> None:  # noqa: N802
        """Take a query that ended well."""
        self._report(action, execution, duration_ns, None)

    def onFailure(self, action: str, execution: Java, error: Java) -> None:  # noqa: N802
        """Take a query that failed."""
        self._report(action, execution, 0, error)

    class Java:
        """What py4j reads to make a Java object of this."""

        implements: ClassVar = ["org.apache.spark.sql.util.QueryExecutionListener"]


class Registration:
    """A listener known to a session; `remove` ends that."""

    def __init__(self, session: Java, gateway: Java, listener: QueryListener) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        # One proxy for both calls: a second one would be another listener to Spark, and
        # unregistering it would do nothing.
        holder = gateway.jvm.java.util.ArrayList()
        holder.add(listener)
        self._proxy = holder.get(0)
        self._manager = session.listenerManager()
        self._manager.register(self._proxy)

    def remove(self) -> None:
        """Stop listening."""
        self._manager.unregister(self._proxy)
