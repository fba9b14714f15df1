"""The names of one dataset: statements of people, and pairs that may be one dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downriver.errors import InvalidRequestError
from downriver.graph.answers.cuts import CutDetector
from downriver.model.answers import PossibleCuts, SameStatement, SameStatements
from downriver.model.ids import DatasetId
from downriver.openlineage.events import same_event
from downriver.openlineage.wire import render_time
from downriver.service.session import now

if TYPE_CHECKING:
    from downriver.graph import CatalogSnapshot
    from downriver.service.session import StoreSession


class IdentityApi:
    """Joins the names of one dataset, and lists names that may be one dataset."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def state_same(self, one: str, other: str, *, same: bool = True) -> SameStatement:
        """Record that two names are one dataset, or with `same=False` that they are not.

        The statement is an event in the log. The latest one about two names counts.
        """
        with self._session.reading() as view:
            datasets = self._dataset(one, "one", view), self._dataset(other, "other", view)
        if datasets[0] == datasets[1]:
            raise InvalidRequestError("other", f"{other!r} is the same name as {one!r}")
        at = now()
        self._session.ingest([same_event(*datasets, at, same=same)])
        first, second = sorted(datasets)
        return SameStatement(one=str(first), other=str(second), same=same, at=render_time(at))

    def _dataset(self, name: str, field: str, view: CatalogSnapshot) -> DatasetId:
        dataset = self._session.resolve(name, view).id
        if not isinstance(dataset, DatasetId):
            raise InvalidRequestError(field, f"{dataset} is not a dataset")
        return dataset

    def statements(self) -> SameStatements:
        """Return every recorded statement, the latest about each pair of names."""
        with self._session.reading() as view:
            stated = view.graph.nodes.identities.statements()
            nodes = {node for one, other, *_ in stated for node in (one, other)}
            names = view.reader.nodes.by_ids(nodes)
        recorded = [
            SameStatement(
                one=str(names[one]), other=str(names[other]), same=same, at=render_time(at)
            )
            for one, other, same, at in stated
        ]
        return SameStatements(statements=sorted(recorded, key=lambda s: (s.one, s.other)))

    def possible_cuts(self) -> PossibleCuts:
        """Return every pair of datasets that may be one dataset under two names."""
        with self._session.reading() as view:
            return CutDetector(view.graph, view.reader).every_cut()
