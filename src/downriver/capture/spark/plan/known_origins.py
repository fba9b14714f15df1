"""Origins of rows, values and columns that the plan does not contain."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.columns import NOTHING, Deps

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downriver.capture.frame_origins import Origins
    from downriver.capture.spark.plan.tree import PlanNode


class KnownOrigins(NamedTuple):
    """The origins of data that enters a plan from outside.

    `rows`: of rows without a plan, by the id of their first column; empty if they come from
    outside of Spark, None if nothing is known. `values`: of literals that stand together.
    `learned`: of a column that a fitted model computes, by its id. `is_written`: whether rows
    without a plan are written in the code of the job, by the id of their first column.
    """

    rows: Callable[[int], Origins | None] = lambda _: None
    values: Callable[[Sequence[PlanNode]], Deps] = lambda _: NOTHING
    learned: Callable[[int], Deps] = lambda _: NOTHING
    is_written: Callable[[int], bool] = lambda _: False


NOTHING_KNOWN = KnownOrigins()
