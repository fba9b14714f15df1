"""Sets and removes tags of datasets, columns and jobs.

Each change is an event in the log. It has precedence over the tags that producers send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.model.governance import TagChange, TagChanges
from downriver.model.ids import ColumnId, JobId
from downriver.openlineage.events import dataset_event, job_event
from downriver.openlineage.facets.description import (
    TAGS,
    parse_tags,
    render_tag_statement,
    tag_facet_name,
)
from downriver.service.session import now

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.govern.tag_file import DeclaredTag
    from downriver.graph import CatalogSnapshot, Entity
    from downriver.openlineage import Event
    from downriver.service.session import StoreSession


class TagApi:
    """Sets and removes tags. Call it with the tags to set and remove."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(self, declared: Sequence[DeclaredTag], *, done: bool = True) -> TagChanges:
        """Make the tags as declared, and return what changes; a second time nothing does.

        Without `done`, only return what would change.
        """
        at = now()
        changes: dict[tuple[str, str], TagChange] = {}
        events: dict[tuple[str, str], Event] = {}
        with self._session.reading() as view:
            for tag in declared:
                found = self._session.resolve(tag.entity, view)
                key = (str(found.id), tag.tag)
                if (tag.tag in self._tags(found, view)) == tag.present:
                    continue
                changes[key] = TagChange(entity=key[0], tag=tag.tag, present=tag.present)
                events[key] = _statement(found, tag, at)
        if done:
            self._session.ingest_many(list(events.values()))
        return TagChanges(changes=list(changes.values()), declared=len(declared), done=done)

    def _tags(self, entity: Entity, view: CatalogSnapshot) -> frozenset[str]:
        """Return the tags of an entity under the name with which a statement is made."""
        tags = parse_tags(
            view.reader.facets.of_each([entity.node], (TAGS,)).get(entity.node, {}).get(TAGS)
        )
        if isinstance(entity.id, ColumnId):
            return tags.by_column.get(entity.id.field.casefold(), frozenset())
        return tags.whole


def _statement(entity: Entity, tag: DeclaredTag, at: int) -> Event:
    field = entity.id.field if isinstance(entity.id, ColumnId) else ""
    facets = {
        tag_facet_name(tag.tag, field): render_tag_statement(tag.tag, field, present=tag.present)
    }
    if isinstance(entity.id, JobId):
        return job_event(entity.id, at, facets=facets)
    dataset = entity.id.dataset if isinstance(entity.id, ColumnId) else entity.id
    return dataset_event(dataset, at, facets)
