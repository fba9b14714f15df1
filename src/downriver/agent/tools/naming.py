"""A name that people wrote, looked up: an entity that is there, and a column of it."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NamedTuple

from downriver.errors import DownriverError, EntityNotFoundError, InvalidRequestError

if TYPE_CHECKING:
    from downriver.agent.tools.desk import Desk
    from downriver.model.flows import EntityDetails


class Named(NamedTuple):
    """An entity that is there, as answers call it; with a column where one was named."""

    entity_id: str
    column: str | None = None

    @property
    def full_id(self) -> str:
        """The id by which a column is traced, else that of the dataset or job."""
        if self.column is None:
            return self.entity_id
        word, _, rest = self.entity_id.partition(":")
        return f"column:{rest}:{self.column}" if word == "dataset" else f"{rest}.{self.column}"

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
            owner = await desk.tracker.get_entity(dataset)
        except DownriverError:
            raise error from None
        return Named(owner.entity_id, _known_column(owner, column))


def _known_column(owner: EntityDetails, column: str) -> str:
    """Return a column as its dataset writes it; where no schema was told, as it was asked for."""
    known = {found.name.casefold(): found.name for found in owner.columns}
    if not known or column.casefold() in known:
        return known.get(column.casefold(), column)
    near = difflib.get_close_matches(column.casefold(), known, 3, 0.5)
    raise EntityNotFoundError(
        f"{owner.name}.{column}", [f"{owner.name}.{known[name]}" for name in near]
    )
