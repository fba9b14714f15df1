"""Datasets and jobs as assets: their types, and the tree around one.

A dbt model is one asset, although it is a job and a table. The same holds for a job and its only
output, if both have the same name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from downriver.graph.names.resolution import Entity, resolve
from downriver.model.assets import (
    ASSET_PREFIX,
    DATASET_TYPES,
    PREFIXES_AS_NAMESPACE,
    AssetNode,
    AssetRef,
)
from downriver.model.facts import EdgeKind
from downriver.model.ids import DatasetId, JobId, short_name
from downriver.openlineage.facets.custom import ASSET, parse_asset
from downriver.openlineage.facets.dataset import DATASET_TYPE, parse_dataset_type
from downriver.openlineage.facets.job import JOB_TYPE, JobTypeFacet, parse_job_type

if TYPE_CHECKING:
    from collections.abc import Iterable

    from downriver.graph.index.identities import Identities
    from downriver.graph.index.node_graph import NodeGraph
    from downriver.model.answers import Trace
    from downriver.model.ids import NodeId
    from downriver.openlineage.facets.custom import AssetFacet
    from downriver.store import CatalogReader

_NO_TYPE = JobTypeFacet()
_JOB_KINDS = {"DAG": "dag", "TASK": "task", "PIPELINE": "pipeline", "FUNCTION": "function"}
_FILES = ("file", "s3://", "gs://", "hdfs://", "abfs", "wasb", "dbfs")


def find_asset(text: str, reader: CatalogReader, identities: Identities) -> Entity:
    """Return the entity of an asset id, of a registered name, or of any other name."""
    registered = _registered(reader)
    named = [n for n, asset in registered.items() if text in (asset.id, asset.name)]
    if len({identities.canonical(number) for number in named}) != 1:
        entity = resolve_name_or_asset(text, reader, identities)
        # If one asset has several names, use the registered one.
        named = [n for n in identities.group(entity.node) if n in registered] or [entity.node]
    return Entity(reader.nodes.by_ids([named[0]])[named[0]], named[0])


def resolve_name_or_asset(text: str, reader: CatalogReader, identities: Identities) -> Entity:
    """Return the entity of a name or of an asset id; assets are read only for asset ids."""
    if text.startswith(ASSET_PREFIX):
        for number, asset in _registered(reader).items():
            if asset.id == text:
                return Entity(reader.nodes.by_ids([number])[number], number)
    return resolve(text, reader, identities)


def _registered(reader: CatalogReader) -> dict[int, AssetFacet]:
    return {number: parse_asset(body) for number, body in reader.facets.named(ASSET).items()}


def is_taken(wanted: str, node: NodeId, reader: CatalogReader) -> bool:
    """Whether another node was registered under an id."""
    registered = _registered(reader)
    names = reader.nodes.by_ids(registered)
    return any(asset.id == wanted and names[n] != node for n, asset in registered.items())


class Assets:
    """Nodes as assets. `load` reads the facts about many nodes at once."""

    def __init__(self, reader: CatalogReader, graph: NodeGraph) -> None:
        self._reader = reader
        self._graph = graph
        self._identities = graph.identities
        self._known: dict[int, AssetFacet | None] = {}  # by canonical id
        self._jobs: dict[int, JobTypeFacet] = {}
        self._declared: dict[int, bytes] = {}  # datasetType facets
        self._makers: dict[int, list[int]] = {}  # by canonical id: the jobs that write a dataset

    def load(self, numbers: Iterable[int]) -> None:
        """Read the facts about nodes and about the jobs that write them."""
        nodes = {self._identities.canonical(number) for number in numbers}
        new = [node for node in nodes if node not in self._known]
        if not new:
            return
        groups = {node: self._identities.group(node) for node in new}
        ids = {name for group in groups.values() for name in group}
        writers = self._graph.neighbours(ids, EdgeKind.WRITES, downstream=False)
        jobs = {job for makers in writers.values() for job in makers}
        facets = self._reader.facets.of_each(ids | jobs, (ASSET, JOB_TYPE, DATASET_TYPE))
        for node, group in groups.items():
            registered = [
                parse_asset(facets[n][ASSET]) for n in group if ASSET in facets.get(n, {})
            ]
            self._known[node] = min(registered, key=lambda asset: asset.id, default=None)
            self._makers[node] = [job for name in group for job in writers.get(name, ())]
        for number in ids | jobs:
            bodies = facets.get(number, {})
            job = bodies.get(JOB_TYPE)
            self._jobs[number] = _NO_TYPE if job is None else parse_job_type(job)
            if DATASET_TYPE in bodies:
                self._declared[number] = bodies[DATASET_TYPE]

    def ref(self, node: NodeId, number: int | None = None) -> AssetRef:
        """Return a node as an asset, registered or not."""
        number = self._reader.nodes.get(node) if number is None else number
        asset = self.registered(number)
        if asset is not None:
            return AssetRef(id=asset.id, name=asset.name, asset_type=asset.assetType)
        name = node.name if isinstance(node, JobId) else _short(node.name)
        return AssetRef(id=str(node), name=name, asset_type=self.type_of(node, number))

    def registered(self, number: int) -> AssetFacet | None:
        """Return the registration of a node."""
        self.load([number])
        return self._known[self._identities.canonical(number)]

    def type_of(self, node: NodeId, number: int) -> str:
        """Return the asset type of a node: as registered, else by its producer."""
        asset = self.registered(number)
        if asset is not None:
            return asset.assetType
        if isinstance(node, JobId):
            return job_type(self._jobs[number])
        makers = [self._jobs[maker] for maker in self._makers[self._identities.canonical(number)]]
        return dataset_type(node, makers, self._declared.get(number))


def job_type(facet: JobTypeFacet) -> str:
    """Return the asset type of a job."""
    if facet.jobType.upper() in _JOB_KINDS:
        return _JOB_KINDS[facet.jobType.upper()]
    if facet.integration.upper() == "SPARK":
        return "spark_job"
    return "dbt_model" if facet.integration.upper() == "DBT" else "script"


def dataset_type(
    node: NodeId, makers: Iterable[JobTypeFacet] = (), declared: bytes | None = None
) -> str:
    """Return the asset type of a dataset: by its datasetType facet, its writers, or its name."""
    if any(maker.integration.upper() == "DBT" for maker in makers):
        return "dbt_model"
    if stated := declared_type(declared):
        return stated
    if node.namespace in PREFIXES_AS_NAMESPACE:
        return node.namespace
    if node.namespace.startswith(_FILES):
        return "file"
    if node.namespace.startswith("kafka"):
        return "topic"
    if node.name.startswith("dashboards/"):
        return "dashboard"
    return "model" if node.namespace.startswith("mlflow") else "table"


def declared_type(facet: bytes | None) -> str:
    """Return the asset type in a datasetType facet, "" for another type or none."""
    declared_type = parse_dataset_type(facet).rpartition("_")[2]  # such as MATERIALIZED_VIEW
    return declared_type if declared_type in DATASET_TYPES else ""


def _short(name: str) -> str:
    return name.rstrip("/").replace("/", ".").rpartition(".")[2]


# The tree


class _Step(NamedTuple):
    """The nodes next to one, on one side."""

    nodes: dict[str, list[str]]

    def of(self, node: str) -> list[str]:
        return self.nodes.get(node, [])


def build_tree(answer: Trace, assets: Assets, reader: CatalogReader) -> AssetNode:
    """Return a trace as a tree of assets, downstream and upstream of the root."""
    tree = _Tree(answer, assets, reader)
    root = answer.root.id
    node = tree.node(root)
    node.downstream = tree.branches(root, downstream=True)
    node.upstream = tree.branches(root, downstream=False)
    return node


class _Tree:
    """A trace being folded into assets."""

    def __init__(self, answer: Trace, assets: Assets, reader: CatalogReader) -> None:
        self._assets = assets
        self._ids: dict[str, NodeId] = {
            node.id: (JobId if node.kind == "job" else DatasetId)(node.namespace, node.name)
            for node in answer.nodes
        }
        self._numbers = reader.nodes.find_each(self._ids.values())
        self._first_at = {
            number: span.first.at
            for number, span in reader.nodes.spans(self._numbers.values()).items()
        }
        assets.load(self._numbers.values())
        self._below = _Step({})
        self._above = _Step({})
        for edge in answer.edges:
            self._below.nodes.setdefault(edge.source, []).append(edge.target)
            self._above.nodes.setdefault(edge.target, []).append(edge.source)

    def node(self, key: str) -> AssetNode:
        number = self._numbers[self._ids[key]]
        ref, asset = self._assets.ref(self._ids[key], number), self._assets.registered(number)
        source_ref = asset.sourceRef if asset is not None else ""
        return AssetNode(id=ref.id, name=ref.name, asset_type=ref.asset_type, source_ref=source_ref)

    def branches(self, root: str, *, downstream: bool) -> list[AssetNode]:
        """Return the tree on one side of a node. A repeated node is expanded once."""
        return self._branches(root, {root}, downstream=downstream)

    def _branches(self, key: str, shown: set[str], *, downstream: bool) -> list[AssetNode]:
        branches = []
        for child in self._children(key, downstream=downstream):
            node = self.node(child)
            node.repeated = child in shown
            if not node.repeated:
                shown.add(child)
                inner = self._branches(child, shown, downstream=downstream)
                if downstream:
                    node.downstream = inner
                else:
                    node.upstream = inner
            branches.append(node)
        return branches

    def _children(self, key: str, *, downstream: bool) -> list[str]:
        """Return the neighbours of an asset, first seen first. A job and its one output are one."""
        step = self._below if downstream else self._above
        near: dict[str, None] = {}
        for other in step.of(key):
            merged = self._merged(other)
            if merged == key:
                near.update(dict.fromkeys(o for o in step.of(other) if o != key))
            elif merged is not None:
                near[merged] = None
            elif self._is_shown(other, downstream=downstream):
                near[other] = None
        near.pop(key, None)
        return sorted(near, key=self._first_seen)

    def _merged(self, key: str) -> str | None:
        """Return the only output of a job, if both are one asset."""
        job = self._ids.get(key)
        made = self._below.of(key) or self._above_made(key)
        if not isinstance(job, JobId) or len(made) != 1 or made[0] not in self._ids:
            return None
        if self._assets.registered(self._numbers[job]) is not None:
            return None
        table = self._ids[made[0]]
        is_dbt = self._assets.type_of(job, self._numbers[job]) == "dbt_model"
        return made[0] if is_dbt or short_name(job.name) == short_name(table.name) else None

    def _above_made(self, key: str) -> list[str]:
        """Return the outputs of a job in an upstream answer."""
        return [made for made, makers in self._above.nodes.items() if key in makers]

    def _is_shown(self, key: str, *, downstream: bool) -> bool:
        """Return whether to show a node: not an unregistered table that has no readers."""
        node = self._ids.get(key)
        if node is None:
            return False
        if not downstream or isinstance(node, JobId):
            return True
        registered = self._assets.registered(self._numbers[node])
        return registered is not None or bool(self._below.of(key))

    def _first_seen(self, key: str) -> tuple[int, str]:
        return self._first_at[self._numbers[self._ids[key]]], key
