"""A name that people wrote, looked up: an entity that is there, and a column of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import DownriverError, EntityNotFoundError, InvalidRequestError

if TYPE_CHECKING:
    from downriver.agent.tools.desk import Desk


class Named(NamedTuple):
    """An entity that is there, as answers call it; with a column where one was named."""

    entity_id: str
    column: str | None = None

    def __str__(self) -> str:
        return f"{self.entity_id}.{self.column}" if self.column else self.entity_id


async def look_up(name: str, desk: Desk) -> Named:
    """Return what a name means; a column of a known dataset too."""
    try:
        return Named((await desk.tracker.get_entity(name)).entity_id)
    except (EntityNotFoundError, InvalidRequestError) as error:
        dataset, dot, column = name.rpartition(".")
        if not dot or not dataset:
            raise
        try:
            return Named((await desk.tracker.get_entity(dataset)).entity_id, column)
        except DownriverError:
            raise error from None
