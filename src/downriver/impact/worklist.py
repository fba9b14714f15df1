"""The order in which a propagation evaluates processes."""

from __future__ import annotations

import heapq
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.impact.simulate.catalog import SimulationCatalog
    from downriver.impact.simulate.process import ProcessKey

_MANY = 50  # queued at once: from here on, ranking costs less than evaluating processes twice


class Worklist:
    """The processes to evaluate, each once: few by distance, many in the order of the data flow."""

    def __init__(self, catalog: SimulationCatalog) -> None:
        self._catalog = catalog
        self._heap: list[tuple[int, int, ProcessKey]] = []
        self._waiting: dict[ProcessKey, int] = {}  # in the order in which they were added
        self._ranks: dict[ProcessKey, int] = {}
        self._added = count()

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, key: ProcessKey, hops: int) -> None:
        """Add a process, unless it is in the list."""
        if key in self._waiting:
            return
        number = self._waiting[key] = next(self._added)
        heapq.heappush(self._heap, (self._ranks.get(key, hops), number, key))
        if len(self._heap) > _MANY and not self._ranks:
            self._order()

    def pop(self) -> ProcessKey:
        """Return the next process."""
        *_, key = heapq.heappop(self._heap)
        del self._waiting[key]
        return key

    def _order(self) -> None:
        """Rank all reachable processes, each after the processes that it reads from."""
        last_first = _finished_last_first(self._catalog, self._waiting)
        self._ranks = {key: rank for rank, key in enumerate(last_first)}
        self._heap = [(self._ranks[key], number, key) for key, number in self._waiting.items()]
        heapq.heapify(self._heap)


def _finished_last_first(
    catalog: SimulationCatalog, starts: Iterable[ProcessKey]
) -> list[ProcessKey]:
    """Walk downstream depth-first. Each node finishes after all nodes downstream of it."""
    finished: list[ProcessKey] = []
    seen: set[ProcessKey] = set()
    for start in starts:
        if start in seen:
            continue
        seen.add(start)
        path = [(start, iter(catalog.readers_after(start)))]
        while path:
            key, following = path[-1]
            for reader in following:
                if reader not in seen:
                    seen.add(reader)
                    path.append((reader, iter(catalog.readers_after(reader))))
                    break
            else:
                finished.append(key)
                path.pop()
    return finished[::-1]
