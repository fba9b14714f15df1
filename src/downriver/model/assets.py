"""Assets: datasets and jobs as people register them, and the tree they form."""

from __future__ import annotations

import hashlib

import msgspec

from downriver.model.answers import BlindSpot
from downriver.model.ids import NodeId

DATASET_TYPES = (
    "table", "dbt_model", "file", "topic", "model", "dashboard", "view", "dataset", "api",
    "feature", "stream", "report",
)  # fmt: skip
JOB_TYPES = ("dag", "task", "spark_job", "script", "job", "pipeline", "function")
ASSET_TYPES = (*DATASET_TYPES, *JOB_TYPES)


ASSET_PREFIX = "asset_"


def asset_id(node: NodeId, digits: int = 8) -> str:
    """Return the id of an asset: short, and the same whenever the same thing is registered."""
    return f"{ASSET_PREFIX}{hashlib.sha256(str(node).encode()).hexdigest()[:digits]}"


class AssetRef(msgspec.Struct, kw_only=True):
    """An asset as others name it; one nobody registered has the id of its dataset or job."""

    id: str
    name: str
    asset_type: str


class RegisteredAsset(msgspec.Struct, kw_only=True):
    """What a registration came to: the asset, and what its code was found to read and write."""

    id: str
    name: str
    asset_type: str
    source_ref: str
    upstream: list[AssetRef]
    read: bool
    columns: list[str]
    complete: bool
    blind_spots: list[BlindSpot]


class AssetNode(msgspec.Struct, kw_only=True, omit_defaults=True):
    """An asset in a tree. `repeated`: what lies behind it is shown elsewhere in the tree."""

    id: str
    name: str
    asset_type: str
    source_ref: str = ""
    repeated: bool = False
    upstream: list[AssetNode] = []
    downstream: list[AssetNode] = []


class AssetTree(msgspec.Struct, kw_only=True):
    """The assets around one, and how complete that is."""

    id: str
    direction: str
    depth: int | None
    graph: AssetNode
    complete: bool
    blind_spots: list[BlindSpot]
