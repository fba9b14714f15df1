"""Sets and removes tags, owners and descriptions of datasets, columns and jobs.

Each change is a statement of a person: an event in the log that has precedence over what producers
send, until it is withdrawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import assert_never

from downriver.errors import InvalidRequestError
from downriver.govern.tag_file import (
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
)
from downriver.openlineage.facets.label_statement import (
    SINGLE_VALUES,
    is_single,
    parse_tag_statements,
    render_tag_facets,
    render_withdrawal,
    render_withdrawn_single,
    stated_facet_name,
)
from downriver.service.catalog.registry import moment_after

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from downriver.govern.tag_file import Declaration, EntityDeclaration
    from downriver.graph import CatalogSnapshot, Entity
    from downriver.openlineage import Event
    from downriver.openlineage.facets.base import Facets
    from downriver.openlineage.facets.description import Subject
    from downriver.openlineage.facets.label_statement import TagStatement
    from downriver.service.session import StoreSession


class TagApi:
    """Sets and removes tags, owners and descriptions. Call it with what to set and remove."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(self, declared: Sequence[Declaration], *, done: bool = True) -> TagChanges:
        """Set the labels as declared, and return what changes. A second call changes nothing.

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
    """The changes by entity, and the events that make them."""

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
        """Add the changes of one declaration."""
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
        if declared.tag in SINGLE_VALUES and not declared.present:
            self._withdraw_single(entity, declared.tag, field)
            return
        before = self._shown_tags(entity)
        stated = {one.tag for one in self._statements(entity) if one.present}
        if declared.tag in (stated if declared.present else set()) or (
            not declared.present and declared.tag not in before
        ):
            return
        self._change_tag(entity, declared.tag, present=declared.present)
        if declared.present and is_single(declared.tag):
            key = declared.tag.partition(":")[0]
            for tag in sorted(_with_key(before, key) - {declared.tag}):
                self._change_tag(entity, tag, present=False)
        facets = render_tag_facets(declared.tag, field, present=declared.present)
        self._state(entity, f"tag {declared.tag}", facets)

    def _withdraw_single(self, entity: Entity, key: str, field: str) -> None:
        """Withdraw the statement about a domain or tier: that of producers counts again."""
        stated = {one.tag for one in self._statements(entity) if one.single and one.present}
        sent = _with_key(self._tags(entity, self._producer_facet(entity, TAGS)), key)
        if not (withdrawn := _with_key(stated, key)):
            return
        for tag in sorted(withdrawn - sent):
            self._change_tag(entity, tag, present=False)
        for tag in sorted(sent - withdrawn):
            self._change_tag(entity, tag, present=True)
        self._state(entity, f"tag {key}", render_withdrawn_single(key, field))

    def _change_tag(self, entity: Entity, tag: str, *, present: bool) -> None:
        change = TagChange(entity=str(entity.id), tag=tag, present=present)
        self.tags[change.entity, tag] = change

    def _add_owners(self, entity: Entity, owners: Sequence[str] | None) -> None:
        _refuse_column(entity, "owners")
        stated = self._statement_facet(entity, OWNERSHIP)
        sent = parse_owners(self._producer_facet(entity, OWNERSHIP))
        if owners is None:
            if stated is None:
                return
            after, facet = sent, render_withdrawal()
        else:
            after = tuple(dict.fromkeys(owner.strip() for owner in owners if owner.strip()))
            if stated is not None and parse_owners(stated) == after:
                return
            facet = render_owners(_subject(entity), after)
        name = str(entity.id)
        before = sent if stated is None else parse_owners(stated)
        self.owners[name] = OwnersChange(
            entity=name, before=list(before), after=list(after), sent=list(sent)
        )
        self._state(entity, OWNERSHIP, {stated_facet_name(OWNERSHIP): facet})

    def _add_description(self, entity: Entity, text: str | None) -> None:
        _refuse_column(entity, "description")
        stated = self._statement_facet(entity, DOCUMENTATION)
        sent = parse_description(self._producer_facet(entity, DOCUMENTATION))
        if text is None:
            if stated is None:
                return
            after, facet = sent, render_withdrawal()
        else:
            if stated is not None and parse_description(stated) == text:
                return
            after, facet = text, render_description(_subject(entity), text)
        name = str(entity.id)
        before = sent if stated is None else parse_description(stated)
        self.descriptions[name] = DescriptionChange(
            entity=name, before=before, after=after, sent=sent
        )
        self._state(entity, DOCUMENTATION, {stated_facet_name(DOCUMENTATION): facet})

    def _state(self, entity: Entity, label: str, facets: Facets) -> None:
        node = entity.id.dataset if isinstance(entity.id, ColumnId) else entity.id
        at = moment_after(self._view.reader, node)
        self.events[str(entity.id), label] = (
            job_event(node, at, facets=facets)
            if isinstance(node, JobId)
            else dataset_event(node, at, facets)
        )

    def _shown_tags(self, entity: Entity) -> frozenset[str]:
        """Return the tags of an entity under the name with which a statement is made."""
        facets = self._view.reader.facets.of_each([entity.node], (TAGS,))
        return self._tags(entity, facets.get(entity.node, {}).get(TAGS))

    def _statements(self, entity: Entity) -> list[TagStatement]:
        field = entity.id.field if isinstance(entity.id, ColumnId) else ""
        facets = self._view.reader.facets.stated([entity.node]).get(entity.node, {})
        return [
            one for one in parse_tag_statements(facets) if one.field.casefold() == field.casefold()
        ]

    def _statement_facet(self, entity: Entity, name: str) -> bytes | None:
        facets = self._view.reader.facets.stated([entity.node])
        return facets.get(entity.node, {}).get(stated_facet_name(name))

    def _producer_facet(self, entity: Entity, name: str) -> bytes | None:
        facets = self._view.reader.facets.sent([entity.node], (name,))
        return facets.get(entity.node, {}).get(name)

    @staticmethod
    def _tags(entity: Entity, body: bytes | None) -> frozenset[str]:
        tags = parse_tags(body)
        if isinstance(entity.id, ColumnId):
            return tags.by_column.get(entity.id.field.casefold(), frozenset())
        return tags.whole


def _with_key(tags: Iterable[str], key: str) -> set[str]:
    return {tag for tag in tags if is_single(tag) and tag.partition(":")[0] == key}


def _refuse_two_values(declarations: Sequence[tuple[Entity, EntityDeclaration]]) -> None:
    values: dict[tuple[str, str], str] = {}
    for entity, declared in declarations:
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
