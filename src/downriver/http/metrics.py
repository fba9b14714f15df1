"""`/metrics`: counters and gauges of the server, in the text format of Prometheus."""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from downriver import __version__
from downriver.errors import DownriverError
from downriver.govern.kpi_limits import list_values
from downriver.http.request import context_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from starlette.requests import Request

    from downriver.http.request import AppContext, ReadPool
    from downriver.model.governance import Kpis

log = logging.getLogger("downriver")

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_FIRST_WAIT = 1.0  # the first answer waits this long for the KPIs
_LEAST_PAUSE = 60.0
_PAUSE_FACTOR = 50.0  # KPIs take at most 2% of the time, however large the store is
_COUNTED = ("events", "datasets", "jobs", "runs", "edges", "columns", "column_edges")


class ServerMetrics:
    """Counts requests and events since the server started. Used on the event loop only."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._durations: dict[str, _Histogram] = {}
        self.in_progress = 0
        self.accepted = 0
        self.refused = 0

    def count_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        self._requests[method, route, status] += 1
        histogram = self._durations.get(route)
        if histogram is None:
            histogram = self._durations[route] = _Histogram([0] * (len(_SECONDS) + 1), [0.0])
        histogram.counts[bisect_left(_SECONDS, seconds)] += 1
        histogram.total[0] += seconds

    def families(self) -> Iterator[_Family]:
        """Yield the metrics of requests and events."""
        yield _Family(
            "downriver_requests_total",
            "counter",
            "Requests by route and status.",
            [
                (f'{{method="{method}",route="{route}",status="{status}"}}', count)
                for (method, route, status), count in sorted(self._requests.items())
            ],
        )
        yield _Family(
            "downriver_request_duration_seconds",
            "histogram",
            "Time until the answer was sent, by route.",
            [
                sample
                for route, histogram in sorted(self._durations.items())
                for sample in histogram.samples(route)
            ],
        )
        yield _gauge("requests_in_progress", "Requests in progress.", self.in_progress)
        yield _Family(
            "downriver_events_total",
            "counter",
            "Events from clients, accepted (on disk) or refused.",
            [('{result="accepted"}', self.accepted), ('{result="refused"}', self.refused)],
        )


class KpiGauges:
    """The KPIs of the store, measured in the background. Used on the event loop only.

    A measurement takes seconds in a large store, so no answer waits for more than the first, and
    the pause between two grows with the time that one takes.
    """

    def __init__(
        self, measure: Callable[[], Kpis], reads: ReadPool, least_pause: float = _LEAST_PAUSE
    ) -> None:
        self._measure_kpis = measure
        self._reads = reads
        self._least_pause = least_pause
        self._kpis: Kpis | None = None
        self._measured_at = 0.0  # in seconds since 1970
        self._due_at = 0.0  # on the monotonic clock
        self._measuring: asyncio.Task[None] | None = None

    async def families(self) -> list[_Family]:
        """Return the KPIs that were measured last, and start a measurement if one is due."""
        if self._measuring is not None and self._measuring.done():
            self._measuring = None
        if self._measuring is None and time.monotonic() >= self._due_at:
            self._measuring = asyncio.create_task(self._measure())
        if self._measuring is not None and self._kpis is None:
            await asyncio.wait([self._measuring], timeout=_FIRST_WAIT)
        return [] if self._kpis is None else _kpi_families(self._kpis, self._measured_at)

    async def _measure(self) -> None:
        start = time.monotonic()
        try:
            self._kpis = await self._reads.run(self._measure_kpis)
            self._measured_at = time.time()
        except DownriverError as exc:
            log.warning("KPIs were not measured: %s", exc)
        finally:
            end = time.monotonic()
            self._due_at = end + max(self._least_pause, _PAUSE_FACTOR * (end - start))


class _Histogram(NamedTuple):
    counts: list[int]  # one more than the bounds
    total: list[float]

    def samples(self, route: str) -> Iterator[tuple[str, float]]:
        below = 0
        for bound, count in zip((*_SECONDS, "+Inf"), self.counts, strict=True):
            below += count
            yield f'_bucket{{route="{route}",le="{bound}"}}', below
        yield f'_sum{{route="{route}"}}', round(self.total[0], 6)
        yield f'_count{{route="{route}"}}', below


class _Family(NamedTuple):
    name: str
    kind: str
    meaning: str
    samples: list[tuple[str, float]]

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self.name} {self.meaning}"
        yield f"# TYPE {self.name} {self.kind}"
        for suffix, value in self.samples:
            yield f"{self.name}{suffix} {value}"


def _gauge(name: str, meaning: str, value: float) -> _Family:
    return _Family(f"downriver_{name}", "gauge", meaning, [("", value)])


async def get_metrics(request: Request) -> Response:
    """Return metrics of the server and its store in the text format of Prometheus."""
    context = context_of(request)
    of_store = await run_in_threadpool(_store_families, context)
    kpis = await context.kpi_gauges.families()
    families = [*context.metrics.families(), *of_store, *kpis]
    return Response(_render(families), media_type=_MEDIA_TYPE)


def _render(families: Iterable[_Family]) -> str:
    return "".join(f"{line}\n" for family in families for line in family.lines())


def _kpi_families(kpis: Kpis, measured_at: float) -> list[_Family]:
    samples = [(f'{{name="{name}"}}', value) for name, value in list_values(kpis)]
    return [
        _Family("downriver_kpi", "gauge", "KPIs: percent, count or median.", samples),
        _gauge("kpi_timestamp_seconds", "The time at which the KPIs were measured.", measured_at),
    ]


def _store_families(context: AppContext) -> list[_Family]:
    lineage = context.lineage
    with lineage.store.reader() as reader:
        counts = reader.counts()
        entries, known = reader.log_lengths()
        received = reader.log.last_received_at()
    return [
        _Family("downriver_info", "gauge", "The version.", [(f'{{version="{__version__}"}}', 1)]),
        _gauge("queue_events", "Events in the write queue.", lineage.session.waiting),
        _gauge("request_body_bytes", "Request bodies in memory.", context.bodies.held),
        _Family(
            "downriver_store_rows",
            "gauge",
            "Events, datasets, jobs, runs and edges in the store.",
            [(f'{{kind="{name}"}}', getattr(counts, name)) for name in _COUNTED],
        ),
        _gauge("log_head", "The last entry of the log and its hash chain.", entries),
        _gauge(
            "catalog_lag_events", "Log entries that the catalog lacks.", max(entries - known, 0)
        ),
        _gauge(
            "log_missing_events",
            "Log entries that were removed. A value above 0 is an alarm.",
            max(known - entries, 0),
        ),
        _gauge(
            "last_event_timestamp_seconds",
            "The time at which the last event was received.",
            (received or 0) / 1_000_000,
        ),
        _gauge(
            "code_worker_busy",
            "1 if a worker process is reading code, else 0.",
            int(context.workers.is_busy()),
        ),
    ]
