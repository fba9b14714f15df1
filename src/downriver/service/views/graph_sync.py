"""A copy of the graph in Neo4j, updated with the changes since the last synchronisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from downriver.export import delete_nodes, push_cypher
from downriver.graph.answers.subgraph import trace_subgraph
from downriver.model.answers import Direction
from downriver.model.facts import EdgeKind
from downriver.model.ids import JobId
from downriver.service.limits import MOST_EXPORTED
from downriver.service.trace import parse_question

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from downriver.export import CypherDriver
    from downriver.graph import CatalogSnapshot
    from downriver.graph.index.node_graph import NodeGraph
    from downriver.service.export import ExportApi
    from downriver.service.session import StoreSession

_NODES_AT_ONCE = 2000


class SyncedGraph(msgspec.Struct, kw_only=True):
    """The result of a synchronisation. `head` is the last event of the log in the copy."""

    target: str
    head: int
    nodes: int = 0
    edges: int = 0
    deleted: int = 0


class _Position(msgspec.Struct):
    """The position of a target. `generation` changes when the catalog is rebuilt."""

    generation: int = -1
    seq: int = 0
    retired: list[str] = []


class GraphSync:
    """Writes the graph to one Neo4j database. The store records the last event that was written."""

    def __init__(self, session: StoreSession, export: ExportApi, target: str) -> None:
        self._session = session
        self._export = export
        self._target = target
        self._key = f"export:neo4j:{target}"

    def write_changes(
        self, driver: CypherDriver, database: str | None = None, *, restart: bool = False
    ) -> SyncedGraph:
        """Write the changes since the last call; the whole graph at first and after a rebuild.

        Every statement merges, so that an interrupted synchronisation is simply repeated.
        """
        with self._session.reading() as view:
            state = view.reader.state()
            saved = None if restart else view.reader.findings.state(self._key)
            position = _Position() if saved is None else _decode(saved)
            same = position.generation == state.generation
            done = SyncedGraph(target=self._target, head=state.seq)
            retired = _names(view.graph.retired, view)
            if same and position.seq == state.seq and set(position.retired) == retired:
                return done
            deleted = retired.difference(position.retired)
            for nodes in _batches(_units(view, position.seq if same else 0)):
                deleted |= self._write(nodes, view, driver, database, done)
            if deleted:
                delete_nodes(deleted, driver, database)
                done.deleted = len(deleted)
        self._keep(_Position(state.generation, state.seq, sorted(retired)))
        return done

    def _write(
        self,
        nodes: set[int],
        view: CatalogSnapshot,
        driver: CypherDriver,
        database: str | None,
        done: SyncedGraph,
    ) -> set[str]:
        """Write nodes and the edges between them; return the other names of the datasets."""
        canonical = sorted({view.graph.nodes.identities.canonical(number) for number in nodes})
        question = parse_question(Direction.BOTH, None, None, MOST_EXPORTED, readers=True)
        found, _ = trace_subgraph(view.graph, view.reader, np.array(canonical, np.int32), question)
        piece = self._export.piece(self._export.marked(found, view))
        node_count, edge_count = push_cypher(piece, driver, database)
        done.nodes += node_count
        done.edges += edge_count
        return {alias for node in found.nodes for alias in node.aliases}

    def _keep(self, position: _Position) -> None:
        with self._session.store.ledger() as ledger:  # after Neo4j has committed it
            ledger.keep(self._key, msgspec.json.encode(position))


def _decode(saved: bytes) -> _Position:
    try:
        return msgspec.json.decode(saved, type=_Position)
    except msgspec.DecodeError:
        return _Position()


def _units(view: CatalogSnapshot, after: int) -> Iterator[set[int]]:
    """Yield nodes that must be written together, for everything that changed after an event.

    A job is written with all datasets that it reads and writes: the relationships between its
    datasets need both ends.
    """
    graph, reader = view.graph.nodes, view.reader
    retired = view.graph.retired
    jobs, datasets = set[int](), set[int]()
    for _, kind, source, target, *_ in reader.changes.edges(after):
        if kind == EdgeKind.READS:
            jobs.add(target)
        elif kind == EdgeKind.WRITES:
            jobs.add(source)
        elif kind in (EdgeKind.DERIVES, EdgeKind.ALIAS, EdgeKind.RENAMED, EdgeKind.SAME):
            datasets |= {source, target}
    labelled = reader.changes.labelled(after)
    numbers = [row[0] for row in reader.changes.nodes(0)] if labelled is None else labelled
    for number, node in reader.nodes.by_ids(numbers).items():
        (jobs if isinstance(node, JobId) else datasets).add(number)
    datasets = {name for number in datasets - retired for name in graph.identities.group(number)}
    jobs |= _far_ends(graph, datasets, EdgeKind.WRITES, downstream=False)
    for job in sorted(jobs - retired):
        reads = _far_ends(graph, [job], EdgeKind.READS, downstream=False)
        yield {job} | reads | _far_ends(graph, [job], EdgeKind.WRITES, downstream=True)
    for dataset in sorted(datasets):
        yield {dataset} | _far_ends(graph, [dataset], EdgeKind.DERIVES, downstream=False)


def _far_ends(
    graph: NodeGraph, nodes: Iterable[int], kind: EdgeKind, *, downstream: bool
) -> set[int]:
    far_ends = graph.neighbours(nodes, kind, downstream=downstream)
    return {number for numbers in far_ends.values() for number in numbers}


def _batches(units: Iterable[set[int]]) -> Iterator[set[int]]:
    batch = set[int]()
    for unit in units:
        batch |= unit
        if len(batch) >= _NODES_AT_ONCE:
            yield batch
            batch = set()
    if batch:
        yield batch


def _names(numbers: Iterable[int], view: CatalogSnapshot) -> set[str]:
    return {str(node) for node in view.reader.nodes.by_ids(numbers).values()}
