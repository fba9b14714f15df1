"""Checkpoints in another place prove that a log was truncated or rewritten."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
from typing import TYPE_CHECKING

import msgspec
import pytest
from tests.contract.test_store import location, opened, postgres_schema, store
from tests.openlineage import dataset, encode, run_event
from tests.unit.cli.command import downriver
from tests.unit.http.test_app import TestClient
from tests.webhook import running_hook

from downriver.errors import InvalidRequestError
from downriver.govern.audit.checkpoints import read_checkpoints
from downriver.http import build_app
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.store import Store

__all__ = ["location", "opened", "postgres_schema", "store"]  # fixtures


@pytest.fixture(autouse=True)
def signing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOWNRIVER_SIGNING_KEY", str(tmp_path / "signing.key"))


def tell(lineage: Lineage, *names: str) -> None:
    lineage.ingest([encode(run_event("load", n, outputs=[dataset(n)])) for n in names])


def test_a_log_that_only_grew_agrees_with_all_its_checkpoints(store: Store) -> None:
    lineage = Lineage(store)
    empty = lineage.checkpoints()
    tell(lineage, "a", "b")
    one = lineage.checkpoints()
    tell(lineage, "c")
    two = lineage.checkpoints()
    assert [c.entries for c in (empty, one, two)] == [0, 2, 3]
    assert lineage.checkpoints.verify([empty, one, two]).ok


def test_a_truncated_log_is_detected(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path / "s")) as lineage:
        tell(lineage, "a", "b")
    shutil.copytree(tmp_path / "s", tmp_path / "old")
    with Lineage.open(str(tmp_path / "s")) as lineage:
        tell(lineage, "c")
        kept = lineage.checkpoints()
    with Lineage.open(str(tmp_path / "old")) as lineage:
        assert lineage.admin.verify().ok
        found = lineage.checkpoints.verify([kept])
        assert (found.ok, found.altered_seq) == (False, 3)
        tell(lineage, "d", "e")  # the next writes hide nothing
        assert lineage.admin.verify().ok
        assert lineage.checkpoints.verify([kept]).altered_seq == 3


def test_a_log_that_was_rewritten_as_a_whole_is_detected(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path / "s")) as lineage:
        tell(lineage, "a", "b", "c")
        kept = lineage.checkpoints()
    with Lineage.open(str(tmp_path / "other")) as lineage:
        tell(lineage, "a", "x", "c", "d")
        assert lineage.admin.verify().ok
        found = lineage.checkpoints.verify([kept])
        assert (found.ok, found.altered_seq) == (False, 3)


def test_forged_checkpoints_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Lineage.open(str(tmp_path / "s")) as lineage:
        tell(lineage, "a")
        kept = lineage.checkpoints()
        for change in ({"entries": 2}, {"at": "2020-01-01T00:00:00Z"}, {"signature": "AAAA"}):
            forged = msgspec.structs.replace(kept, **change)
            with pytest.raises(InvalidRequestError, match="signature does not match"):
                lineage.checkpoints.verify([kept, forged])
        with pytest.raises(InvalidRequestError, match="no checkpoint"):
            lineage.checkpoints.verify([])
        monkeypatch.setenv("DOWNRIVER_SIGNING_KEY", str(tmp_path / "other.key"))
        with pytest.raises(InvalidRequestError, match="another key"):
            lineage.checkpoints.verify([kept])
        assert lineage.checkpoints.verify([kept], key=kept.key).ok


def test_checkpoints_are_kept_in_files_git_and_behind_urls(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    for command in (
        ["init", "-q"],
        ["config", "user.email", "a@example.com"],
        ["config", "user.name", "a"],
    ):
        repository.mkdir(exist_ok=True)
        subprocess.run(["git", "-C", str(repository), *command], check=True)
    with Lineage.open(str(tmp_path / "s")) as lineage, running_hook() as received:
        tell(lineage, "a")
        first = lineage.checkpoints(str(tmp_path / "kept.jsonl"))
        second = lineage.checkpoints(str(tmp_path / "kept.jsonl"))
        assert read_checkpoints(str(tmp_path / "kept.jsonl")) == [first, second]
        in_git = lineage.checkpoints(f"git:{repository}")
        (repository / "downriver-checkpoints.jsonl").write_text("altered\n")  # not committed
        assert read_checkpoints(f"git:{repository}") == [in_git]
        posted = lineage.checkpoints(received.url)
        assert received.posts[0][1]["signature"] == posted.signature
        for place in ("ftp://x/y", f"git:{tmp_path}", str(tmp_path / "no" / "where")):
            with pytest.raises(InvalidRequestError):
                lineage.checkpoints(place)


def test_a_server_keeps_checkpoints_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "kept.jsonl"
    with Lineage.open(str(tmp_path / "s")) as lineage:
        with lineage.checkpoints.schedule():
            pass
        monkeypatch.setenv("DOWNRIVER_CHECKPOINT_TO", str(place))
        with lineage.checkpoints.schedule():
            tell(lineage, "a")
        assert read_checkpoints(str(place))[-1].entries == 1  # one at the end
        monkeypatch.setenv("DOWNRIVER_CHECKPOINT_TO", "ftp://x")
        with pytest.raises(InvalidRequestError, match="DOWNRIVER_CHECKPOINT_TO"):
            lineage.checkpoints.schedule().__enter__()


def test_the_commands(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path / ".downriver")) as lineage:
        tell(lineage, "a", "b")
    assert downriver("audit", "checkpoint", "--to", "kept", cwd=tmp_path).returncode == 0
    assert downriver("audit", "verify", "--against", "kept", cwd=tmp_path).returncode == 0
    printed = downriver("audit", "checkpoint", cwd=tmp_path).stdout
    assert json.loads(printed)["entries"] == 2
    shutil.rmtree(tmp_path / ".downriver")
    with Lineage.open(str(tmp_path / ".downriver")) as lineage:
        tell(lineage, "x", "y", "z")
    key = json.loads(printed)["key"]
    done = downriver("audit", "verify", "--against", "kept", "--key", key, cwd=tmp_path)
    assert (done.returncode, "entry 2" in done.stderr) == (1, True)
    assert downriver("audit", "verify", "--against", "nowhere", cwd=tmp_path).returncode == 2
    (tmp_path / "bad").write_text("{}\n")
    bad = downriver("audit", "verify", "--against", "bad", cwd=tmp_path)
    assert (bad.returncode, "line 1 is not a checkpoint" in bad.stderr) == (2, True)


def test_the_audit_log_is_exported_whole(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path / ".downriver")) as lineage:
        tell(lineage, "a")
        for n in range(3):
            lineage.admin.create_key(f"=k{n}", "reader")
    lines = downriver("audit", "export", cwd=tmp_path).stdout.splitlines()
    assert [json.loads(line)["action"] for line in lines] == [*["create key"] * 3, "write"]
    done = downriver("audit", "export", "--format", "csv", "-o", "a.csv", cwd=tmp_path)
    assert done.returncode == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text())))
    assert [row["target"] for row in rows if row["action"] == "create key"][-1] == "'=k0"
    assert downriver("audit", "export", "--format", "xml", cwd=tmp_path).returncode == 2


def test_over_http(tmp_path: Path) -> None:
    with Lineage.open(str(tmp_path)) as lineage, TestClient(build_app(lineage)) as client:
        tell(lineage, "a")
        made = client.post("/v1/audit/checkpoints")
        assert made.status_code == 201
        tell(lineage, "b")
        asked = {"checkpoints": [made.json()]}
        assert client.post("/v1/audit/verification", json=asked).json()["ok"] is True
        asked["checkpoints"][0]["entries"] = 2
        assert client.post("/v1/audit/verification", json=asked).status_code == 400
        exported = client.get("/v1/audit/export", params={"format": "csv"})
        assert exported.text.startswith("id,actor,action")
        assert client.get("/v1/audit/export", params={"format": "x"}).status_code == 400
