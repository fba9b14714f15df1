"""An evidence pack has what is known, is recorded, and shows every alteration."""

from __future__ import annotations

import io
import json
import zipfile
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from tests.contract.test_store import location, opened, postgres_schema, store
from tests.openlineage import dataset, dataset_event, encode, run_event
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import derives, moment, output, owned_by, run, schema, tagged, told
from tests.unit.http.test_app import TestClient

from downriver.errors import InvalidRequestError
from downriver.govern.evidence.pack import read_pack, verify_pack, write_pack, zip_pack
from downriver.http import build_app
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.store import Store

__all__ = ["location", "opened", "postgres_schema", "store"]  # fixtures

HOSTILE = "mart<script>alert(1)</script>"
CHECKS = {"dataQualityAssertions": {"assertions": [{"assertion": "unique", "success": False}]}}
FLOW = [
    *run(
        "build",
        0,
        reads=["raw"],
        writes=[
            output(
                "mart",
                {
                    **schema(id="int", mail="text"),
                    **owned_by("ann"),
                    **tagged("certified", mail="pii"),
                    **derives(id="raw.id", mail="raw.mail"),
                },
            )
        ],
    ),
    *run("build", 2, reads=["raw"], writes=[output("mart", schema(id="bigint", mail="text"))]),
]


@pytest.fixture
def signing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PostgreSQL store has no folder of its own for the key."""
    monkeypatch.setenv("DOWNRIVER_SIGNING_KEY", str(tmp_path / "signing.key"))


@pytest.mark.usefixtures("signing")
def test_a_pack_has_lineage_columns_runs_owners_and_history(store: Store) -> None:
    lineage = Lineage(store)
    lineage.ingest([encode(event) for event in FLOW])
    lineage.ingest(
        [
            encode(
                run_event("test", "t1", at=moment(3), inputs=[dataset("mart", inputFacets=CHECKS)])
            )
        ]
    )
    pack = json.loads(lineage.evidence("mart", by="ann").files["evidence.json"])
    assert (pack["owners"], pack["tags"], pack["created_by"]) == (["ann"], ["certified"], "ann")
    columns = {column["name"]: column for column in pack["columns"]}
    assert columns["mail"]["tags"] == ["pii"]
    assert columns["id"]["derivations"][0]["input_columns"] == ["raw.id"]
    assert [v["retyped"] for v in pack["schema_history"]] == [
        [],
        [{"name": "id", "from": "int", "to": "bigint"}],
    ]
    assert {run["state"] for run in pack["runs"]} == {"COMPLETE"}
    assert [check["success"] for check in pack["quality"]] == [False]
    assert [entry["dataset"].rpartition(":")[2] for entry in pack["freshness"]] == ["mart", "raw"]
    assert pack["freshness"][1]["last_updated"] is None
    with store.reader() as reader:
        entries = list(reader.log.entries())
    assert entries[-2].chain.hex() == pack["log"]["chain"]  # the last one records the pack


def test_a_pack_as_of_a_moment_excludes_later_events(tmp_path: Path) -> None:
    with told(tmp_path, FLOW) as lineage:
        early = lineage.evidence("mart", as_of=moment(1)).pack
        assert [column.type for column in early.columns] == ["int", "text"]
        assert (len(early.runs), len(early.schema_history)) == (1, 1)
        assert early.version.id != lineage.evidence("mart").pack.version.id


@pytest.mark.usefixtures("signing")
def test_packs_are_recorded_against_the_version_of_the_dataset(store: Store) -> None:
    lineage = Lineage(store)
    lineage.ingest([encode(event) for event in FLOW])
    assert lineage.evidence.list_packs("mart").packs == []
    first = lineage.evidence("mart").record
    second = lineage.evidence("mart").record
    lineage.admin.rebuild()
    found = lineage.evidence.list_packs("mart").packs
    assert [pack.id for pack in found] == [second.id, first.id]
    assert first.version == second.version
    assert lineage.admin.verify().ok


def test_every_altered_byte_missing_and_added_file_is_named(tmp_path: Path) -> None:
    with told(tmp_path, FLOW) as lineage:
        key = lineage.evidence.key().public
        files = lineage.evidence("mart").files
    assert verify_pack(files, key).trusted
    assert not verify_pack(files).trusted
    for name, content in files.items():
        for at in {0, len(content) // 2, len(content) - 1}:
            altered = bytearray(content)
            altered[at] ^= 1
            found = verify_pack({**files, name: bytes(altered)}, key)
            assert not found.ok
            assert any(name in f.file or name in f.reason for f in found.faults)
        missing = verify_pack({n: c for n, c in files.items() if n != name}, key)
        assert (missing.ok, missing.faults[0].file) == (False, name)
    added = verify_pack({**files, "more.txt": b""}, key)
    assert [(f.file, f.reason) for f in added.faults] == [("more.txt", "was added")]


def test_a_pack_that_another_key_signed_is_refused(tmp_path: Path) -> None:
    with told(tmp_path / "a", FLOW) as lineage:
        key = lineage.evidence.key().public
    with told(tmp_path / "b", FLOW) as lineage:
        files = lineage.evidence("mart").files
    assert verify_pack(files).ok
    found = verify_pack(files, key)
    assert (found.ok, found.faults[0].file) == (False, "manifest.json")
    with pytest.raises(InvalidRequestError, match="not a public key"):
        verify_pack(files, "ed25519:abc")


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [v or "" for n, v in attrs if n in ("src", "href", "xlink:href")]


def test_the_page_escapes_names_and_loads_nothing(tmp_path: Path) -> None:
    hostile = [
        *run("x<b>", 0, reads=["raw"], writes=[output(HOSTILE, schema(**{"<i>": "<u>"}))]),
        dataset_event(HOSTILE, facets=owned_by('"><img src=x>')),
    ]
    with told(tmp_path, hostile) as lineage:
        text = lineage.evidence(HOSTILE).files["evidence.html"].decode()
    page = _Page()
    page.feed(text)
    assert "<script" not in text
    assert not page.tags & {"script", "img", "i", "u", "b", "link", "iframe"}
    assert not [link for link in page.links if not link.startswith("#")]


def test_the_key_is_created_once_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    with told(tmp_path, FLOW) as lineage:
        first = lineage.evidence.key().public
        assert lineage.evidence.key().public == first
    assert (tmp_path / "signing.key").stat().st_mode & 0o777 == 0o600
    (tmp_path / "signing.key").write_text("nothing")
    with told(tmp_path, []) as lineage, pytest.raises(InvalidRequestError, match="a private key"):
        lineage.evidence.key()


def test_the_command_writes_verifies_and_lists(tmp_path: Path) -> None:
    with told(tmp_path / ".downriver", FLOW):
        pass
    done = downriver("evidence", "mart", "-o", "pack", cwd=tmp_path)
    assert (done.returncode, "lineage" in done.stdout) == (0, True)
    again = downriver("evidence", "mart", "-o", "pack", cwd=tmp_path)
    assert (again.returncode, "not an empty folder" in again.stderr) == (2, True)
    key = downriver("evidence", "key", cwd=tmp_path).stdout.strip()
    assert downriver("evidence", "verify", "pack", "--key", key, cwd=tmp_path).returncode == 0
    listed = json.loads(downriver("evidence", "list", "mart", "--json", cwd=tmp_path).stdout)
    assert len(listed["packs"]) == 1
    (tmp_path / "pack" / "graph.svg").unlink()
    bad = downriver("evidence", "verify", "pack", cwd=tmp_path)
    assert (bad.returncode, "graph.svg is missing" in bad.stderr) == (1, True)
    assert downriver("evidence", "verify", "nowhere", cwd=tmp_path).returncode == 2
    assert downriver("evidence", "job:etl:build", "-o", "x", cwd=tmp_path).returncode == 2


def test_packs_over_http(tmp_path: Path) -> None:
    with told(tmp_path, FLOW) as lineage, TestClient(build_app(lineage)) as client:
        made = client.post("/v1/evidence", json={"dataset": "mart"})
        assert (made.status_code, made.headers["content-type"]) == (201, "application/zip")
        with zipfile.ZipFile(io.BytesIO(made.content)) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        key = client.get("/v1/evidence/key").json()["key"]
        assert verify_pack(files, key).id == made.headers["x-evidence-id"]
        listed = client.get("/v1/evidence", params={"dataset": "mart"}).json()["packs"]
        assert [pack["id"] for pack in listed] == [made.headers["x-evidence-id"]]
        assert client.post("/v1/evidence", json={"dataset": "nowhere"}).status_code == 404
        assert client.get("/v1/evidence").status_code == 400


def test_a_zip_file_is_verified_like_a_folder(tmp_path: Path) -> None:
    with told(tmp_path / "s", FLOW) as lineage:
        files = lineage.evidence("mart").files
    (tmp_path / "pack.zip").write_bytes(zip_pack(files))
    write_pack(files, tmp_path / "pack")
    assert read_pack(tmp_path / "pack.zip") == read_pack(tmp_path / "pack") == files
    (tmp_path / "bad.zip").write_text("no archive")
    with pytest.raises(InvalidRequestError, match="neither a folder nor a zip"):
        read_pack(tmp_path / "bad.zip")
