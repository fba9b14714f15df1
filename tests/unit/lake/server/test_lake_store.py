"""A server on a lake gives the answers of a server that got the events itself."""

from __future__ import annotations

import shutil
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette import testclient
from tests.openlineage import encode, parsed, run_event
from tests.unit.cli.command import downriver
from tests.unit.lake.orders import FIRST, SECOND, make, server_catalog

from downriver.errors import ForbiddenError, LakeError, NoEventLogError, StoreError
from downriver.http import build_app
from downriver.lake.server.lake_store import LakeStore
from downriver.lake.storage.tables import list_versions
from downriver.service import Lineage
from downriver.store import open_store

slow = pytest.mark.slow
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")

ENTITIES = ("orders", "totals", "job:sum", "orders.amount", "totals.total")
QUESTIONS = (
    *(f"/v1/entity?entity={entity}" for entity in ENTITIES),
    *(f"/v1/trace?entity={entity}&direction=both" for entity in ENTITIES),
    *(f"/v1/lineage/{entity}?direction=both" for entity in ("table:orders", "table:totals")),
    *(f"/v1/changes?entity={entity}" for entity in ("orders", "totals")),
    *(f"/v1/schema-versions?entity={entity}" for entity in ("orders", "totals")),
    "/v1/column-lineage?dataset=totals",
    "/v1/select?q=%2Btotals",
    "/v1/search?q=tot",
    "/v1/runs",
    "/v1/certified",
    "/v1/tags",
    "/v1/diagnosis?dataset=totals",
    "/v1/quality?dataset=totals",
    "/v1/nothing",
    "/v1/entity?entity=ordes",
    "/api/v1/namespaces",
    "/api/v1/namespaces/etl/jobs",
    "/api/v1/namespaces/etl/jobs/sum/runs",
    "/api/v1/search?q=orders",
    "/api/v1/tags",
    "/api/v1/lineage?nodeId=job:etl:sum",
    "/api/v1/stats/jobs?period=DAY",
)


@pytest.fixture
def client_of():
    """Return a client of a server on a store."""
    with ExitStack() as opened:

        def connect(store: Any) -> testclient.TestClient:
            lineage = opened.enter_context(Lineage(store))
            return opened.enter_context(
                testclient.TestClient(
                    build_app(lineage),
                    base_url="http://localhost",
                    client=("127.0.0.1", 50000),
                )
            )

        yield connect


def plain(value: Any) -> Any:
    """Return an answer without the time of the question, and without the order of lists.

    The order may depend on the order of arrival.
    """
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items() if name != "at"}
    if isinstance(value, list):
        return sorted(map(plain, value), key=repr)
    return value


@slow
def test_a_lake_gives_the_answers_of_a_store(built, tmp_path, client_of):
    store = open_store(str(tmp_path))
    store.append([parsed(event) for event in (*FIRST, *SECOND)])
    lake, server = client_of(LakeStore(built.folder.location)), client_of(store)
    for question in QUESTIONS:
        given, expected = lake.get(question), server.get(question)
        assert given.status_code == expected.status_code, question
        assert plain(given.json()) == plain(expected.json()), question
    drop = {"type": "column_drop", "column": "amount"}
    change = {"asset_id": "orders", "proposed_changes": [drop]}
    answers = [server.post("/v1/lineage/impact", json=change) for server in (lake, server)]
    assert plain(answers[0].json()) == plain(answers[1].json())
    assert answers[0].status_code == 200

    counts = [server.get("/v1/status").json()["counts"] for server in (lake, server)]
    assert counts[0] == counts[1]
    digest = parsed(FIRST[1]).ref.digest.hex()
    events = [server.get(f"/v1/events/{digest}").json()["event"] for server in (lake, server)]
    assert events[0] == events[1]


@slow
def test_a_new_version_is_merged(built, spark, tmp_path):
    """First the version of the first build, then that of the second, then merged runs."""
    shutil.copytree(built.folder.location, tmp_path / "lake")
    versions = list_versions(built.folder)
    files = [tmp_path / "lake" / "versions" / f"{number:08d}.json" for number in versions]
    later = {file: file.read_bytes() for file in files[2:]}
    for file in later:
        file.unlink()
    with closing(LakeStore(str(tmp_path / "lake"))) as store:
        assert dump(store) == server_catalog(tmp_path / "first", FIRST)
        assert not store.refresh()
        for file, body in later.items():
            file.write_bytes(body)
        assert store.refresh()
        everything = server_catalog(tmp_path / "all")
        assert dump(store) == everything
        make(tmp_path / "lake", spark).compact()
        assert store.refresh()
        assert dump(store) == everything


def dump(store: LakeStore) -> dict[str, Any]:
    with store.reader() as reader:
        return reader.dump()


@slow
def test_another_lake_in_its_place_is_reported(built, tmp_path):
    shutil.copytree(built.folder.location, tmp_path / "lake")
    last = tmp_path / "lake" / "versions" / f"{list_versions(built.folder)[-1]:08d}.json"
    with closing(LakeStore(str(tmp_path / "lake"))) as store:
        store.check()
        version = msgspec.json.decode(last.read_bytes())
        for number in (version["version"], version["version"] + 1):
            other = {**version, "version": number, "made_at": "2030-01-01T00:00:00+00:00"}
            last.with_name(f"{number:08d}.json").write_bytes(msgspec.json.encode(other))
        with pytest.raises(StoreError, match="start the server again"):
            store.refresh()
        with pytest.raises(StoreError, match="start the server again"):
            store.check()


@slow
def test_writes_and_questions_about_the_log_are_refused(built, client_of):
    store = LakeStore(built.folder.location)
    event = parsed(run_event("other"))
    for write in (
        lambda: store.append([event]),
        lambda: store.prepare(event),
        lambda: store.rebuild(lambda done, total: None),
        lambda: store.add_key("ci", "reader"),
    ):
        with pytest.raises(ForbiddenError, match="downriver lake ingest"):
            write()
    with store.reader() as reader, pytest.raises(NoEventLogError, match="lake publish"):
        reader.log.entries()
    client = client_of(store)
    sent = client.post("/api/v1/lineage", content=encode(run_event("other")))
    assert sent.status_code == 403
    assert "changes nothing" in sent.json()["detail"]
    assert client.get("/api/v1/events/lineage").status_code == 501
    assert client.get("/v1/audit/verification").status_code == 501
    assert client.get("/readyz").status_code == 200


@slow
def test_a_lake_that_changes_is_followed(built, tmp_path):
    shutil.copytree(built.folder.location, tmp_path / "lake")
    last = tmp_path / "lake" / "versions" / f"{list_versions(built.folder)[-1]:08d}.json"
    body = last.read_bytes()
    last.unlink()
    with closing(LakeStore(str(tmp_path / "lake"))) as store:
        before = store.version
        store.follow(0.01)
        last.write_bytes(body)
        for _ in range(6000):
            if store.version > before:
                break
            store._closing.wait(0.01)
        assert store.version == before + 1


def test_a_folder_without_a_lake_is_an_error(tmp_path):
    with pytest.raises(LakeError, match="no lake in"):
        LakeStore(str(tmp_path))
    Path(tmp_path, "versions").mkdir()
    Path(tmp_path, "versions", "00000001.json").write_text('{"version": 1}')
    with pytest.raises(LakeError, match="lake build"):
        LakeStore(str(tmp_path))
    done = downriver("serve", "--lake", "elsewhere", cwd=tmp_path)
    assert done.returncode == 2
    assert "no lake in elsewhere" in done.stderr
    both = downriver("serve", "--lake", "elsewhere", "--store", "here", cwd=tmp_path)
    assert both.returncode == 2
    assert "not both" in both.stderr
