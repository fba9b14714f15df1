"""`downriver.spark`: capture the lineage of a PySpark job with one line."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from downriver import settings
from downriver.capture.emit import guarded
from downriver.capture.spark import TrackedConnectSession, TrackedSession, UncapturedSession
from downriver.capture.spark.local_session import local_session
from downriver.capture.trained_models import TrackedModel
from downriver.errors import DownriverError
from downriver.sdk.delivery import open_emitter

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "TrackedConnectSession",
    "TrackedModel",
    "TrackedSession",
    "Tracker",
    "UncapturedSession",
    "local_session",
    "track",
    "tracked",
]

Tracker: TypeAlias = TrackedSession | TrackedConnectSession | UncapturedSession
_TRACKED = "_downriver"
_CONNECT = "pyspark.sql.connect"


def track(
    spark: Any, *, job: str | None = None, namespace: str | None = None, to: str | None = None
) -> Tracker:
    """Capture every query of an application, in all of its sessions, until `spark.stop()`.

    `to` is the URL of a server or a store; the default is DOWNRIVER_URL, then DOWNRIVER_STORE, then
    the nearest `.downriver/`. `job` and `namespace` name the application. If a session of the
    application is tracked already, its tracker is returned.

    Never raises: if the session cannot be captured, a warning is logged, and the tracker that is
    returned does nothing.
    """
    is_remote = type(spark).__module__.startswith(_CONNECT)
    context = type(spark) if is_remote else getattr(spark, "_sc", None)
    known = getattr(context, _TRACKED, None)
    kind = TrackedConnectSession if is_remote else TrackedSession
    if isinstance(known, TrackedSession | TrackedConnectSession) and known.is_open:
        return known
    session: Tracker
    uncaptured = session = UncapturedSession(spark, "an error was logged")
    with guarded("tracking a Spark session"):
        try:
            session = kind(
                spark,
                open_emitter(to),
                job=job or settings.read_text(settings.JOB) or None,
                namespace=namespace or settings.read_text(settings.NAMESPACE) or None,
            )
        except DownriverError as exc:
            uncaptured.reason = str(exc)
            raise
        setattr(context, _TRACKED, session)
    return session


@contextmanager
def tracked(
    spark: Any, *, job: str, namespace: str | None = None, to: str | None = None
) -> Iterator[Tracker]:
    """Capture the queries of a block under a separate job."""
    session = track(spark, namespace=namespace, to=to)
    try:
        with session.block(job):
            yield session
    finally:
        session.flush()
