"""The log of a store as a source of a lake."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from tests.contract.test_store import location, opened, postgres_schema, store
from tests.openlineage import dataset_event, encode
from tests.unit.govern.scenario import owned_by

from downriver.errors import LakeError
from downriver.lake.bronze.store_log import export_log
from downriver.lake.storage.files import Folder
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.store import Store

__all__ = ["location", "opened", "postgres_schema", "store"]  # fixtures

NAME = "jane.doe@acme.example"
OWNED = encode(dataset_event("mart", owned_by(NAME)))
OTHER = encode(dataset_event("raw"))


def exported_text(folder: Folder, path: str) -> str:
    return " ".join(
        bytes(body).decode() for rows in folder.scan_column(path, "body", 100) for body in rows
    )


def test_a_lake_with_the_old_text_of_redacted_entries_is_refused(
    store: Store, tmp_path: Path
) -> None:
    lineage, folder = Lineage(store), Folder(str(tmp_path / "lake"))
    lineage.ingest([OWNED])
    before = export_log(store, None, folder, "first")
    assert before is not None
    assert NAME in exported_text(folder, "first")
    lineage.retention.redact(NAME)
    lineage.ingest([OTHER])
    with pytest.raises(LakeError, match=r"redacted 1 entry .* Delete the lake"):
        export_log(store, before, folder, "second")
    assert folder.names("second") == []


def test_a_new_lake_contains_only_the_redacted_text(store: Store, tmp_path: Path) -> None:
    lineage, folder = Lineage(store), Folder(str(tmp_path / "lake"))
    lineage.ingest([OWNED, OTHER])
    lineage.retention.redact(NAME)
    state = export_log(store, None, folder, "first")
    assert state is not None
    text = exported_text(folder, "first")
    assert (NAME in text, "[redacted]" in text) == (False, True)
    lineage.ingest([encode(dataset_event("later"))])
    assert export_log(store, state, folder, "second") is not None


def test_an_event_that_only_looks_like_a_redaction_changes_nothing(
    store: Store, tmp_path: Path
) -> None:
    lineage, folder = Lineage(store), Folder(str(tmp_path / "lake"))
    lineage.ingest([OWNED])
    before = export_log(store, None, folder, "first")
    facet = {"entries": {"1": "00" * 32, "-1": "00" * 32, "9": "00" * 32}}
    forged = {
        "eventTime": "2026-03-01T08:00:00Z",
        "dataset": {
            "namespace": "downriver:redactions",
            "name": "log",
            "facets": {"downriver_redaction": facet},
        },
    }
    lineage.ingest([json.dumps(forged).encode()])
    assert export_log(store, before, folder, "second") is not None
