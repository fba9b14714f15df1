"""Sets and removes tags, owners and descriptions of datasets, columns and jobs.

Each change is an event in the log. A tag has precedence over the tags that producers send. Owners
and descriptions are the facets of OpenLineage, which a later event of a producer replaces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import assert_never

from downriver.errors import InvalidRequestError
from downriver.govern.tag_file import (
    SINGLE_VALUES,
    DeclaredDescription,
    DeclaredOwners,
    DeclaredPropagation,
    DeclaredTag,
)
from downriver.govern.tags import propagating_tags
from downriver.model.governance import PII_TAG
from downriver.model.ids import TAG_RECORDS, ColumnId, DatasetId, JobId
from downriver.model.trust.tag_changes import (
    DescriptionChange,
    OwnersChange,
    PropagationChange,
    TagChange,
    TagChanges,
)
from downriver.openlineage.events import dataset_event, job_event
from downriver.openlineage.facets.description import (
    DOCUMENTATION,
    OWNERSHIP,
    PROPAGATION,
    TAGS,
    parse_description,
    parse_owners,
    parse_tags,
    render_description,
    render_owners,
    render_propagation,
    render_tag_statement,
    tag_facet_name,
)
from downriver.service.catalog.registry import moment_after

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from downriver.govern.tag_file import Declaration, EntityDeclaration
    from downriver.graph import CatalogSnapshot, Entity
    from downriver.openlineage import Event
    from downriver.openlineage.facets.base import Facets
    from downriver.openlineage.facets.description import Subject
    from downriver.service.session import StoreSession


class TagApi:
    """Sets and removes tags, owners and descriptions. Call it with what to set and remove."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(self, declared: Sequence[Declaration], *, done: bool = True) -> TagChanges:
        """Make the labels as declared, and return what changes; a second time nothing does.

        Without `done`, only return what would change.
        """
        with self._session.reading() as view:
            plan = _LabelPlan(view)
            found = [
                (self._session.resolve(one.entity, view), one)
                for one in declared
                if not isinstance(one, DeclaredPropagation)
            ]
            _refuse_two_values(found)
            for entity, one in found:
                plan.add(entity, one)
            for each in declared:
                if isinstance(each, DeclaredPropagation):
                    plan.add_propagation(each)
        if done:
            self._session.ingest_many(list(plan.events.values()))
        return TagChanges(
            changes=list(plan.tags.values()),
            owners=list(plan.owners.values()),
            descriptions=list(plan.descriptions.values()),
            propagation=list(plan.propagation.values()),
            changed=plan.changed,
            declared=len(declared),
            done=done,
        )


class _LabelPlan:
    """What changes, by entity, and the events that change it."""

    def __init__(self, view: CatalogSnapshot) -> None:
        self._view = view
        self.tags: dict[tuple[str, str], TagChange] = {}
        self.owners: dict[str, OwnersChange] = {}
        self.descriptions: dict[str, DescriptionChange] = {}
        self.propagation: dict[str, PropagationChange] = {}
        self.events: dict[tuple[str, str], Event] = {}
        self.changed = 0

    def add_propagation(self, declared: DeclaredPropagation) -> None:
        """Add the change if a tag begins or stops to propagate."""
        tag, propagates = declared
        if (tag in propagating_tags(self._view.reader)) == propagates:
            return
        if tag == PII_TAG:
            raise InvalidRequestError(tag, "always propagates")
        record = DatasetId(TAG_RECORDS, tag)
        facets: Facets = {PROPAGATION: render_propagation(propagates=propagates)}
        self.propagation[tag] = PropagationChange(tag=tag, propagates=propagates)
        at = moment_after(self._view.reader, record)
        self.events[str(record), PROPAGATION] = dataset_event(record, at, facets)
        self.changed += 1

    def add(self, entity: Entity, declared: EntityDeclaration) -> None:
        """Add what changes for one declaration."""
        before = len(self.events)
        match declared:
            case DeclaredTag():
                self._add_tag(entity, declared)
            case DeclaredOwners():
                self._add_owners(entity, declared.owners)
            case DeclaredDescription():
                self._add_description(entity, declared.text)
            case _:
                assert_never(declared)
        self.changed += len(self.events) > before

    def _add_tag(self, entity: Entity, declared: DeclaredTag) -> None:
        field = entity.id.field if isinstance(entity.id, ColumnId) else ""
        for tag, present in _differences(declared, self._tags(entity)):
            change = TagChange(entity=str(entity.id), tag=tag, present=present)
            facet = render_tag_statement(tag, field, present=present)
            self.tags[change.entity, tag] = change
            self._state(entity, f"tag {tag}", {tag_facet_name(tag, field): facet})

    def _add_owners(self, entity: Entity, owners: Sequence[str]) -> None:
        _refuse_column(entity, "owners")
        before = parse_owners(self._facet(entity, OWNERSHIP))
        after = tuple(dict.fromkeys(owner.strip() for owner in owners if owner.strip()))
        if before == after:
            return
        name = str(entity.id)
        self.owners[name] = OwnersChange(entity=name, before=list(before), after=list(after))
        self._state(entity, OWNERSHIP, {OWNERSHIP: render_owners(_subject(entity), after)})

    def _add_description(self, entity: Entity, text: str) -> None:
        _refuse_column(entity, "description")
        before = parse_description(self._facet(entity, DOCUMENTATION))
        if before == text:
            return
        name = str(entity.id)
        self.descriptions[name] = DescriptionChange(entity=name, before=before, after=text)
        facet = render_description(_subject(entity), text)
        self._state(entity, DOCUMENTATION, {DOCUMENTATION: facet})

    def _state(self, entity: Entity, label: str, facets: Facets) -> None:
        node = entity.id.dataset if isinstance(entity.id, ColumnId) else entity.id
        at = moment_after(self._view.reader, node)
        self.events[str(entity.id), label] = (
            job_event(node, at, facets=facets)
            if isinstance(node, JobId)
            else dataset_event(node, at, facets)
        )

    def _tags(self, entity: Entity) -> frozenset[str]:
        """Return the tags of an entity under the name with which a statement is made."""
        tags = parse_tags(self._facet(entity, TAGS))
        if isinstance(entity.id, ColumnId):
            return tags.by_column.get(entity.id.field.casefold(), frozenset())
        return tags.whole

    def _facet(self, entity: Entity, name: str) -> bytes | None:
        facets = self._view.reader.facets.of_each([entity.node], (name,))
        return facets.get(entity.node, {}).get(name)


def _differences(declared: DeclaredTag, current: frozenset[str]) -> Iterator[tuple[str, bool]]:
    """Return the tags to set and to remove. A new domain or tier replaces the earlier one."""
    key, _, value = declared.tag.partition(":")
    same_key = {tag for tag in current if tag.partition(":")[0] == key}
    if declared.present and declared.tag not in current:
        yield declared.tag, True
    removed = {declared.tag} & current if not declared.present else set()
    if key in SINGLE_VALUES and (declared.present or not value):
        removed |= same_key - {declared.tag if declared.present else ""}
    for tag in sorted(removed):
        yield tag, False


def _refuse_two_values(found: Sequence[tuple[Entity, EntityDeclaration]]) -> None:
    values: dict[tuple[str, str], str] = {}
    for entity, declared in found:
        if not isinstance(declared, DeclaredTag) or not declared.present:
            continue
        key, _, value = declared.tag.partition(":")
        known = values.setdefault((str(entity.id), key), value)
        if key in SINGLE_VALUES and known != value:
            raise InvalidRequestError(key, f"{entity.id} has both {known!r} and {value!r}")


def _subject(entity: Entity) -> Subject:
    return "Job" if isinstance(entity.id, JobId) else "Dataset"


def _refuse_column(entity: Entity, field: str) -> None:
    if isinstance(entity.id, ColumnId):
        raise InvalidRequestError(field, f"{entity.id} is a column; name its dataset")
