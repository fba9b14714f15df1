"""Assets: registered datasets and jobs, their tree, and type prefixes such as `table:orders`."""

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
    """Return the id of an asset; registering the same node again gives the same id."""
    return f"{ASSET_PREFIX}{hashlib.sha256(str(node).encode()).hexdigest()[:digits]}"


class AssetRef(msgspec.Struct, kw_only=True):
    """A reference to an asset; an unregistered one has the id of its dataset or job."""

    id: str
    name: str
    asset_type: str


class RegisteredAsset(msgspec.Struct, kw_only=True):
    """A registered asset, with what its code reads and writes."""

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
    """An asset in a tree. `repeated`: its branch is shown in another place of the tree."""

    id: str
    name: str
    asset_type: str
    source_ref: str = ""
    repeated: bool = False
    upstream: list[AssetNode] = []
    downstream: list[AssetNode] = []


class AssetTree(msgspec.Struct, kw_only=True):
    """The assets around an asset, and whether they are complete."""

    id: str
    direction: str
    depth: int | None
    graph: AssetNode
    complete: bool
    blind_spots: list[BlindSpot]


DATASET_PREFIXES = DATASET_TYPES
JOB_PREFIXES = JOB_TYPES
COLUMN_PREFIXES = ("column", "datasetfield")
ANY_DATASET_PREFIX = "dataset"
# Types whose prefix is the namespace, so that `api:orders` and `table:orders` are different.
PREFIXES_AS_NAMESPACE = frozenset(
    {"api", "dashboard", "feature", "model", "report", "stream", "topic"}
)


def split_prefix(text: str) -> tuple[str, str]:
    """Return the type prefix of a name and the rest; the prefix is `dataset` if there is none."""
    word, colon, name = text.partition(":")
    is_prefix = word.lower() in (*DATASET_PREFIXES, *JOB_PREFIXES, *COLUMN_PREFIXES)
    if colon and is_prefix and not name.startswith("//"):
        return word.lower(), name.strip()
    return ANY_DATASET_PREFIX, text.strip()
