"""Apache Atlas' own client sends entities to a server, and reads what `export atlas` sends."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from tests.openlineage import dataset, encode, run_event
from tests.recorder import recording_server
from tests.unit.cli.command import downriver

from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

SEND = """
import json, sys
from apache_atlas.client.base_client import AtlasClient
from apache_atlas.model.instance import AtlasEntitiesWithExtInfo, AtlasEntity

def entity(kind, name, guid, **attributes):
    made = AtlasEntity({"typeName": kind, "attributes": {
        "qualifiedName": f"{name}@prod", "name": name, **attributes}})
    made.guid = guid
    return made

sent = AtlasEntitiesWithExtInfo()
sent.entities = [
    entity("hive_table", "shop.orders", "-1"),
    entity("hive_table", "shop.report", "-2"),
    entity("hive_process", "load", "-3", inputs=[{"guid": "-1", "typeName": "hive_table"}],
           outputs=[{"guid": "-2", "typeName": "hive_table"}]),
]
answer = AtlasClient(sys.argv[1], ("admin", "admin")).entity.create_entities(sent)
changed = {
    kind: sorted(header.attributes["qualifiedName"] for header in headers)
    for kind, headers in answer.mutatedEntities.items()
}
print(json.dumps({"guids": answer.guidAssignments, "changed": changed}))
"""
READ = """
import json, sys
from apache_atlas.model.instance import AtlasEntitiesWithExtInfo

sent = AtlasEntitiesWithExtInfo(json.load(sys.stdin))
sent.type_coerce_attrs()
print(json.dumps([
    [entity.typeName, entity.guid, entity.attributes["qualifiedName"]] for entity in sent.entities
]))
"""


def run(python: Path, script: str, *arguments: str, stdin: str = "") -> Any:
    command = [python, "-c", script, *arguments]
    done = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def python(client_python: Callable[..., Path]) -> Path:
    return client_python("apache-atlas==0.0.16")


def test_the_client_of_atlas_sends_entities_and_reads_the_answer(
    python: Path, server_url: str, tmp_path: Path
) -> None:
    answer = run(python, SEND, server_url)
    assert set(answer["guids"]) == {"-1", "-2", "-3"}
    names = ["load@prod", "shop.orders@prod", "shop.report@prod"]
    assert answer["changed"] == {"CREATE": names}
    again = run(python, SEND, server_url)
    assert again == {"guids": answer["guids"], "changed": {"UPDATE": names}}
    import httpx

    params = {"entity": "shop.report", "direction": "upstream"}
    found = httpx.get(f"{server_url}/v1/trace", params=params).json()
    assert {node["name"] for node in found["nodes"]} == {"shop.report", "load@prod", "shop.orders"}


def test_the_client_of_atlas_reads_what_is_exported(python: Path, tmp_path: Path) -> None:
    event = run_event("clean", inputs=[dataset("raw")], outputs=[dataset("orders")])
    with Lineage.open(str(tmp_path / ".downriver")) as lineage:
        lineage.ingest([encode(event)])
    with recording_server({"/api/atlas/v2/entity/bulk": {"guidAssignments": {}}}) as server:
        done = downriver("export", "atlas", server.url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (request,) = server.requests
    entities = run(python, READ, stdin=json.dumps(request.body))
    assert sorted(kind for kind, _, _ in entities) == ["DataSet", "DataSet", "Process"]
    assert all(guid.startswith("-") and "@" in name for _, guid, name in entities)
