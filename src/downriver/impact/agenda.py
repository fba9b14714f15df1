"""Which processes are looked at next: those that others depend on before the others."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.impact.world import World

_MANY = 50  # waiting at once: from here on, finding the order costs less than looking twice


class Agenda:
    """Processes that wait, each once. Few are taken by hops, many in the order data flows."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._heap: list[tuple[int, int]] = []
        self._waiting: set[int] = set()
        self._ranks: dict[int, int] = {}

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, key: int, hops: int) -> None:
        """Let a process wait, if it does not yet."""
        if key in self._waiting:
            return
        self._waiting.add(key)
        heapq.heappush(self._heap, (self._ranks.get(key, hops), key))
        if len(self._heap) > _MANY and not self._ranks:
            self._order()

    def pop(self) -> int:
        """Return the next process."""
        _, key = heapq.heappop(self._heap)
        self._waiting.remove(key)
        return key

    def _order(self) -> None:
        """Rank all that can be reached from here, each behind those it reads from."""
        last_first = _finished_last_first(self._world, self._waiting)
        self._ranks = {key: rank for rank, key in enumerate(last_first)}
        self._heap = [(self._ranks[key], key) for key in self._waiting]
        heapq.heapify(self._heap)


def _finished_last_first(world: World, starts: Iterable[int]) -> list[int]:
    """Walk downstream in depth. What is finished later is upstream of what was before it."""
    finished: list[int] = []
    seen: set[int] = set()
    for start in starts:
        if start in seen:
            continue
        seen.add(start)
        path = [(start, iter(world.readers_after(start)))]
        while path:
            key, following = path[-1]
            for reader in following:
                if reader not in seen:
                    seen.add(reader)
                    path.append((reader, iter(world.readers_after(reader))))
                    break
            else:
                finished.append(key)
                path.pop()
    return finished[::-1]
