"""The facet that removes one edge between a job and a dataset from answers, or shows it again."""

from __future__ import annotations

import hashlib
from typing import Literal, TypeAlias

import msgspec

from downriver.model.ids import EDGE_RECORDS, DatasetId, JobId
from downriver.openlineage.facets.base import parse_facet, render_facet

EDGE_RETIREMENT = "downriver_edgeRetirement"
FlowDirection: TypeAlias = Literal["reads", "writes"]


class EdgeRetirement(msgspec.Struct, kw_only=True, frozen=True):
    """A statement that a job no longer reads or writes a dataset, or does so again."""

    job: JobId
    dataset: DatasetId
    direction: FlowDirection
    retired: bool = True
    reason: str = ""
    by: str = ""

    @property
    def record(self) -> DatasetId:
        """The record that holds the statement. A facet of the job would count as a mention."""
        identity = msgspec.json.encode([self.direction, str(self.job), str(self.dataset)])
        return DatasetId(EDGE_RECORDS, hashlib.sha256(identity).hexdigest()[:32])


def render_edge_retirement(statement: EdgeRetirement) -> msgspec.Raw:
    """Return the facet of a statement about an edge."""
    content = {field: getattr(statement, field) for field in statement.__struct_fields__}
    return render_facet("DownriverEdgeRetirement", "1-0-0", **content)


def parse_edge_retirement(body: bytes) -> EdgeRetirement | None:
    """Return the statement of a facet, None if it is not complete."""
    content = parse_facet(body, _Content)
    if content.job is None or content.dataset is None or content.direction is None:
        return None
    return EdgeRetirement(
        job=content.job,
        dataset=content.dataset,
        direction=content.direction,
        retired=content.retired,
        reason=content.reason,
        by=content.by,
    )


class _Content(msgspec.Struct):
    job: JobId | None = None
    dataset: DatasetId | None = None
    direction: FlowDirection | None = None
    retired: bool = False
    reason: str = ""
    by: str = ""
