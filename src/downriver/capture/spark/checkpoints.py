"""Checkpoints: rows that go on without the plan that made them, so the plan is remembered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.capture.frames import ROWS, Origins
from downriver.capture.spark.sources import by_id

if TYPE_CHECKING:
    from downriver.capture.spark.harvest import Harvest
    from downriver.capture.spark.lineage import PlanLineage

_ACTIONS = frozenset({"checkpoint", "localCheckpoint"})


class Checkpoints:
    """The checkpoints of one session. Their rows keep the ids of the plan they were made by."""

    def __init__(self) -> None:
        self._known: dict[int, Origins] = {}

    def add(self, harvest: Harvest, lineage: PlanLineage) -> None:
        """Remember an action's columns, if it made a checkpoint."""
        if harvest.action in _ACTIONS and harvest.columns:
            columns = zip(harvest.columns, lineage.columns, strict=False)
            self._known[harvest.columns[0]] = {
                **{by_id(column_id): column.deps for column_id, column in columns},
                ROWS: lineage.rows,
            }

    def origins_of(self, first_id: int) -> Origins | None:
        """Return where a checkpoint's rows come from, by the id of its first column."""
        return self._known.get(first_id)
