"""`downriver export datahub` posts what DataHub's metadata service accepts."""

from __future__ import annotations

import json
from pathlib import Path

from tests.recorder import recording_server
from tests.unit.cli.command import downriver

EXAMPLE = Path(__file__).parents[3] / "examples" / "catalogs" / "datahub_metadata.json"
PATH = "/aspects?action=ingestProposal"


def test_lineage_is_sent_as_proposals_with_columns_and_the_token(tmp_path: Path) -> None:
    downriver("import", "datahub", str(EXAMPLE), cwd=tmp_path)
    with recording_server({PATH: {"value": "urn"}}) as server:
        done = downriver("export", "datahub", server.url, "--token", "secret", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (request,) = server.requests
    assert request.headers["authorization"] == "Bearer secret"
    assert request.headers["x-restli-protocol-version"] == "2.0.0"
    proposal = request.body["proposal"]
    original = json.loads(EXAMPLE.read_text())[1]
    assert (proposal["entityUrn"], proposal["aspectName"]) == (
        original["entityUrn"],
        "upstreamLineage",
    )
    columns = json.loads(proposal["aspect"]["value"])["fineGrainedLineages"]
    stated = original["aspect"]["json"]["fineGrainedLineages"]
    assert [c["upstreams"] for c in columns] == [c["upstreams"] for c in stated]


def test_a_server_that_refuses_is_an_error_with_its_answer(tmp_path: Path) -> None:
    downriver("import", "datahub", str(EXAMPLE), cwd=tmp_path)
    with recording_server({}) as server:
        done = downriver("export", "datahub", server.url, cwd=tmp_path)
    assert done.returncode != 0
    assert "status 404" in done.stderr
