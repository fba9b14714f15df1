"""DataHub's own client validates what we write, and its emitter sends the same requests."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.recorder import recording_server
from tests.unit.cli.command import downriver

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "catalogs" / "datahub_metadata.json"
PATH = "/aspects?action=ingestProposal"
EMITTER = """
import json, sys
from datahub.emitter.mcp import MetadataChangeProposalWrapper
from datahub.emitter.rest_emitter import DataHubRestEmitter

emitter = DataHubRestEmitter(sys.argv[1], openapi_ingestion=False)
for obj in json.load(open(sys.argv[2])):
    proposal = MetadataChangeProposalWrapper.try_from_mcpc(
        __import__("datahub.metadata.schema_classes", fromlist=["_"])
        .MetadataChangeProposalClass.from_obj(
            {**obj, "aspect": {"contentType": "application/json",
                               "value": json.dumps(obj["aspect"]["json"])}}
        )
    )
    assert proposal and proposal.aspect.validate(), obj
    emitter.emit(proposal)
"""


def test_the_requests_are_those_of_the_emitter_of_datahub(
    client_python: Callable[..., Path], tmp_path: Path
) -> None:
    python = client_python("acryl-datahub[datahub-rest]==1.7.0.17")
    assert downriver("import", "datahub", str(EXAMPLE), cwd=tmp_path).returncode == 0
    drawn = downriver("graph", "--select", "*", "--format", "datahub", cwd=tmp_path)
    (tmp_path / "proposals.json").write_text(drawn.stdout)
    (tmp_path / "emit.py").write_text(EMITTER)
    answers = {PATH: {"value": "urn"}, "/config": {"noCode": "true", "versions": {}}}
    with recording_server(answers) as server:
        downriver("export", "datahub", server.url, cwd=tmp_path)
        done = subprocess.run(
            [python, tmp_path / "emit.py", server.url, tmp_path / "proposals.json"],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3000:]
    ours, theirs = (request.body["proposal"] for request in server.requests if request.body)
    keys = ("entityType", "entityUrn", "changeType", "aspectName")
    assert [ours[key] for key in keys] == [theirs[key] for key in keys]
    mine, reference = (json.loads(one["aspect"]["value"]) for one in (ours, theirs))
    for key in ("dataset", "type"):
        assert mine["upstreams"][0][key] == reference["upstreams"][0][key]
    assert mine["fineGrainedLineages"] == reference["fineGrainedLineages"]
