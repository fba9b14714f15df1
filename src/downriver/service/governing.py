"""Watching over the graph: its figures, incidents, tags and what the monitor found."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from downriver import settings
from downriver.errors import InvalidEventError, InvalidRequestError
from downriver.events.wire import parse_time
from downriver.govern import incident, kpis
from downriver.govern.drift import Inspector, Limits
from downriver.govern.surroundings import Surroundings
from downriver.govern.tags import reach_of_tag
from downriver.lake.closure import Items, count_reached
from downriver.service.opened import OpenStore, now

if TYPE_CHECKING:
    from downriver.govern.kpis import Ints
    from downriver.model.governance import Incident, Kpis, TagReach
    from downriver.store import Reader


class Governing(OpenStore):
    """Answers how the graph is doing, what broke, and where a tag leads."""

    def kpis(self) -> Kpis:
        """Return the figures of the whole graph: coverage, blast radius, failures and the like."""
        with self.reading() as reader:
            around = self._around(reader)
            view = kpis.View(self._graph, reader, around, _count_reached, around.stale_days, now())
            return kpis.measure(view)

    def incident_report(
        self, entity: str, at: str | None = None, *, limits: Limits | None = None
    ) -> Incident:
        """Return what is wrong with a dataset, column or job, where from, and whom it concerns.

        `at` is the moment to look from, now if left out: what happened after it is not known.
        """
        moment = now() if at is None else _moment(at, "at")
        with self.reading() as reader:
            found = self.resolve(entity, reader)
            inspector = Inspector(self._graph, reader, limits or Limits(), moment)
            scene = incident.Scene(reader, inspector, self._around(reader), moment)
            return incident.report(found, scene)

    def tag_reach(self, tag: str) -> TagReach:
        """Return where a tag such as `pii` was set, and where data took it."""
        if not tag.strip():
            raise InvalidRequestError("tag", "empty")
        with self.reading() as reader:
            around = self._around(reader)
            wanted = tag.strip().lower()
            return reach_of_tag(self._graph, reader, wanted, around, around.stale_days)

    def _around(self, reader: Reader) -> Surroundings:
        return Surroundings(self._graph, reader, settings.read_number(settings.STALE_DAYS))


def _count_reached(
    size: int, source: Ints, target: Ints, of: Ints, kind: Ints
) -> tuple[Ints, Ints]:
    counted = count_reached(size, source, target, Items(of, kind))
    none = np.zeros(size, np.int64)  # where there are no datasets, or no jobs
    datasets, jobs = (*counted, none, none)[:2]
    return datasets, jobs


def _moment(text: str, field: str) -> int:
    try:
        return parse_time(text, field)
    except InvalidEventError as exc:
        raise InvalidRequestError(field, exc.reason) from exc
