"""The facet that removes old runs of a job from lists, or shows them again."""

from __future__ import annotations

import hashlib

import msgspec

from downriver.model.ids import RUN_RECORDS, DatasetId, JobId
from downriver.openlineage.facets.base import parse_facet, render_facet

RUN_RETIREMENT = "downriver_runRetirement"


class RunRetirement(msgspec.Struct, kw_only=True, frozen=True):
    """A statement that runs of a job before a time are no longer listed, or are listed again."""

    job: JobId
    before: str
    retired: bool = True
    reason: str = ""
    by: str = ""

    @property
    def record(self) -> DatasetId:
        """The record that holds the statement. A facet of the job would count as a mention."""
        return DatasetId(RUN_RECORDS, hashlib.sha256(str(self.job).encode()).hexdigest()[:32])


def render_run_retirement(statement: RunRetirement) -> msgspec.Raw:
    """Return the facet of a statement about the runs of a job."""
    content = {field: getattr(statement, field) for field in statement.__struct_fields__}
    return render_facet("DownriverRunRetirement", "1-0-0", **content)


def parse_run_retirement(body: bytes) -> RunRetirement | None:
    """Return the statement of a facet, None if it is not complete."""
    content = parse_facet(body, _Content)
    if content.job is None or not content.before:
        return None
    return RunRetirement(
        job=content.job,
        before=content.before,
        retired=content.retired,
        reason=content.reason,
        by=content.by,
    )


class _Content(msgspec.Struct):
    job: JobId | None = None
    before: str = ""
    retired: bool = False
    reason: str = ""
    by: str = ""
