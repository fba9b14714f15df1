"""Answers about lineage: traces, paths and trees."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from downriver import settings
from downriver.errors import EntityNotFoundError, InvalidEventError, InvalidRequestError
from downriver.graph import FOREVER, Question, paths, trace
from downriver.graph.names.assets import Assets, build_tree, find_asset
from downriver.model.answers import Direction, Paths, Trace
from downriver.model.assets import AssetTree
from downriver.model.ids import ColumnId, DatasetId
from downriver.model.views.runs import StoredEvent
from downriver.openlineage.wire import parse_time, render_time
from downriver.service.limits import DEFAULT_LIMIT

if TYPE_CHECKING:
    from downriver.service.session import StoreSession


class TraceApi:
    """Traces and paths."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def __call__(
        self,
        entity: str,
        direction: Direction | str = Direction.DOWNSTREAM,
        *,
        depth: int | None = None,
        as_of: str | None = None,
        limit: int = DEFAULT_LIMIT,
        readers: bool = False,
        statements: bool = False,
    ) -> Trace:
        """Return the upstream or downstream of an entity, and whether the answer is complete.

        Jobs that only read, such as Spark's `collect`, are counted. With `readers` they are listed.
        Jobs that report single statements of a task are shown as the task, which lists them. With
        `statements` they are nodes of their own.
        """
        question = parse_question(
            direction, depth, as_of, limit, readers=readers, statements=statements
        )
        with self._session.reading(question.as_of) as view:
            resolved = self._session.resolve(entity, view)
            return trace(view.graph, view.reader, resolved, question)

    def paths(self, source: str, target: str, *, limit: int = 10) -> Paths:
        """Return the paths of data from one entity to another, shortest first."""
        question = parse_question(Direction.DOWNSTREAM, None, None, limit)
        with self._session.reading() as view:
            start, end = self._session.resolve(source, view), self._session.resolve(target, view)
            if (start.column is None) != (end.column is None):
                raise InvalidRequestError("target", "give two columns, or none")
            return paths(view.graph, view.reader, start, end, question)

    def asset_tree(
        self, asset: str, direction: Direction | str = Direction.DOWNSTREAM, *, depth: int | None
    ) -> AssetTree:
        """Return the assets downstream and upstream of one, as a tree."""
        question = parse_question(direction, depth, None, DEFAULT_LIMIT, statements=False)
        with self._session.reading() as view:
            identities = view.graph.nodes.identities
            entity = find_asset(asset, view.reader, identities)
            traced = trace(view.graph, view.reader, entity, question)
            root = build_tree(traced, Assets(view.reader, view.graph.nodes), view.reader)
        return AssetTree(
            id=root.id,
            direction=question.direction.value,
            depth=depth,
            graph=root,
            complete=traced.complete,
            blind_spots=traced.blind_spots,
        )

    def split_entity(self, entity: str) -> tuple[str, str | None]:
        """Return the dataset of a name, by its full id, and the column if the name includes one.

        A column that is in no schema is accepted if its dataset is known.
        """
        with self._session.reading() as view:
            try:
                node = self._session.resolve(entity, view).id
            except EntityNotFoundError:
                dataset, dot, column = entity.rpartition(".")
                if not dot:
                    raise
                node = self._session.resolve(dataset, view).id
                if not isinstance(node, DatasetId):
                    raise
                return str(node), column
        if isinstance(node, ColumnId):
            return str(node.dataset), node.field
        return str(node), None

    def find_event(self, digest: str) -> bytes:
        """Return an event as it was sent, by its SHA-256."""
        wanted = _parse_digest(digest)
        with self._session.store.reader() as reader:
            body = reader.log.find_event(wanted)
        if body is None:
            raise EntityNotFoundError(digest)
        return body

    def stored_event(self, digest: str) -> StoredEvent:
        """Return an event as it was sent, with the time when it was received."""
        event = msgspec.json.decode(self.find_event(digest))
        with self._session.store.reader() as reader:
            received = reader.log.received_at(_parse_digest(digest))
        producer = event.get("producer")
        return StoredEvent(
            digest=digest.lower(),
            received_at=render_time(received or 0),
            producer=producer if isinstance(producer, str) else None,
            event=event,
        )


def _parse_digest(digest: str) -> bytes:
    try:
        return bytes.fromhex(digest)
    except ValueError as exc:
        raise InvalidRequestError("event", f"{digest!r} is not hexadecimal") from exc


def parse_question(
    direction: Direction | str,
    depth: int | None,
    as_of: str | None,
    limit: int,
    *,
    readers: bool = False,
    statements: bool = True,
) -> Question:
    """Return a valid question, or raise an error that names the invalid value."""
    if depth is not None and depth < 0:
        raise InvalidRequestError("depth", f"{depth} is less than 0")
    if limit < 1:
        raise InvalidRequestError("limit", f"{limit} is less than 1")
    try:
        wanted = Direction(direction)
    except ValueError as exc:
        raise InvalidRequestError(
            "direction", f"{direction!r} is not one of upstream, downstream, both"
        ) from exc
    return Question(
        wanted,
        depth,
        parse_as_of(as_of),
        limit,
        settings.read_number(settings.STALE_DAYS),
        readers,
        statements,
    )


def parse_as_of(as_of: str | None) -> int:
    """Return the moment of the answer. None means no limit."""
    if as_of is None:
        return FOREVER
    try:
        return parse_time(as_of, "as_of")
    except InvalidEventError as exc:
        raise InvalidRequestError("as_of", exc.reason) from exc
