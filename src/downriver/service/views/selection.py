"""Selectors resolved to datasets and jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from downriver.errors import EntityNotFoundError, InvalidRequestError
from downriver.graph.answers.subgraph import trace_subgraph
from downriver.graph.selectors import NodeSelection, parse_selector
from downriver.model.answers import Direction
from downriver.model.views.graph_view import Selection
from downriver.service.limits import MOST_EXPORTED
from downriver.service.trace import parse_as_of, parse_question

if TYPE_CHECKING:
    from collections.abc import Sequence

    from downriver.graph import CatalogSnapshot, Question
    from downriver.graph.index.vectors import Ints
    from downriver.model.answers import Trace
    from downriver.service.session import StoreSession


class SelectionApi:
    """Datasets and jobs that a selector selects. Call it to list their ids."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(self, q: str, *, as_of: str | None = None) -> Selection:
        """Return the ids that a selector such as `+orders+2 tag:pii` selects, sorted."""
        selector = parse_selector(q)
        moment = parse_as_of(as_of)
        with self._session.reading(moment) as view:
            found = NodeSelection(view, moment).select(selector)
            shown = view.graph.nodes.identities.display_names(found.nodes.tolist(), view.reader)
        ids = sorted(str(name.id) for name in shown.values())
        return Selection(ids=ids, total=len(ids), unknown=found.unknown)

    def subgraph(
        self,
        q: str | None = None,
        *,
        ids: Sequence[str] = (),
        as_of: str | None = None,
        limit: int = MOST_EXPORTED,
    ) -> tuple[Trace, dict[str, int], Question]:
        """Return the nodes of a selector or a list of ids, with the edges between.

        Also return the store's number of each node, and the question.
        """
        question = parse_question(Direction.BOTH, None, as_of, limit, readers=True)
        with self._session.reading(question.as_of) as view:
            nodes = self._by_ids(ids, view) if q is None else self._select(q, question, view)
            return *trace_subgraph(view.graph, view.reader, nodes, question), question

    def _select(self, q: str, question: Question, view: CatalogSnapshot) -> Ints:
        found = NodeSelection(view, question.as_of).select(parse_selector(q))
        if not len(found.nodes):
            raise EntityNotFoundError(q)
        return found.nodes

    def _by_ids(self, ids: Sequence[str], view: CatalogSnapshot) -> Ints:
        if not ids:
            raise InvalidRequestError("ids", "missing")
        canonical = view.graph.nodes.identities.canonical
        found = dict.fromkeys(canonical(self._session.resolve(name, view).node) for name in ids)
        return np.array(list(found), np.int32)
