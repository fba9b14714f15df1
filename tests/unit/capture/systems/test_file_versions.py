"""Versions of files: what a fingerprint sees, and what it does not store."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.openlineage import encode, run_event
from tests.unit.cli.command import downriver

from downriver.capture.file_versions import read_file_version
from downriver.errors import InvalidRequestError
from downriver.openlineage.wire import render_time
from downriver.service import Lineage
from downriver.store.catalog.encoding import decompress

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "ada@example.com"


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Lineage]:
    with Lineage.open(str(tmp_path / "store")) as lineage:
        yield lineage


def write(path: Path, text: str, second: int) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    os.utime(path, (second, second))


def test_a_version_names_the_columns_with_other_values(opened: Lineage, tmp_path: Path) -> None:
    file = tmp_path / "users.csv"
    write(file, f"id,email\n1,{SECRET}\n2,\n", 1_700_000_000)
    assert opened.systems.files(str(file)).runs == 1
    write(file, f"id,email,age\n2,,31\n1,{SECRET},32\n", 1_700_000_100)
    opened.systems.files(str(file))
    write(file, f"id,email,age\n2,,31\n3,{SECRET},32\n", 1_700_000_200)
    opened.systems.files(str(file))
    newest, middle, oldest = opened.versions(str(file)).versions
    assert (oldest.rows, oldest.at) == (2, "2023-11-14T22:13:20Z")
    assert (middle.columns_added, middle.columns_changed) == (["age"], [])  # only another order
    assert newest.columns_changed == ["id"]
    with opened.store.reader() as reader:
        stored = b"".join(decompress(entry.body) or b"" for entry in reader.log.entries())
    assert b"users.csv" in stored
    assert SECRET.encode() not in stored


def test_files_that_did_not_change_are_not_read_again(opened: Lineage, tmp_path: Path) -> None:
    file = tmp_path / "model.csv"
    write(file, "a\n1\n", 1_700_000_000)
    opened.systems.files(str(file))
    stamp = dict(read_file_version(str(file)).commits[0].parameters)["stamp"]
    assert read_file_version(str(file), stamp=stamp).commits == ()
    assert opened.systems.files(str(file)).runs == 0
    os.utime(file, (1_700_000_500, 1_700_000_500))  # touched: read, and found the same
    assert opened.systems.files(str(file)).runs == 0


def test_a_version_that_comes_back_is_the_newest(opened: Lineage, tmp_path: Path) -> None:
    file = tmp_path / "orders.csv"
    for text, second in (("a\n1\n", 1_700_000_000), ("a\n2\n", 1_700_000_100)):
        write(file, text, second)
        opened.systems.files(str(file))
    first = opened.versions(str(file)).versions[1].version
    write(file, "a\n1\n", 1_700_000_000)  # restored with its time
    assert opened.systems.files(str(file)).runs == 1
    assert opened.versions(str(file)).versions[0].version == first


def test_a_folder_is_one_dataset_and_belongs_to_the_run_that_wrote_it(
    opened: Lineage, tmp_path: Path
) -> None:
    folder = tmp_path / "lake" / "orders"
    folder.mkdir(parents=True)
    for part in (1, 2):
        pq.write_table(pa.table({"id": [part, part]}), folder / f"part-0000{part}-x.parquet")
    write(folder / "_SUCCESS", "", 1_700_000_000)
    for part in folder.iterdir():
        os.utime(part, (1_700_000_000, 1_700_000_000))
    output = [{"namespace": "file", "name": str(folder)}]
    for state, second in (("START", 0), ("COMPLETE", 20)):
        at = render_time((1_699_999_990 + second) * 1_000_000)
        opened.ingest([encode(run_event("load", state=state, at=at, outputs=output))])
    opened.systems.files(str(folder))
    (version,) = opened.versions(str(folder)).versions
    assert version.written_by is not None
    assert version.written_by.endswith(":load")
    assert version.rows == 4


def test_what_cannot_be_read_is_reported(opened: Lineage, tmp_path: Path) -> None:
    write(tmp_path / "model.pkl", "x", 1_700_000_000)
    assert opened.systems.files(str(tmp_path / "model.pkl")).unread == [
        "columns are not read from files with .pkl"
    ]
    write(tmp_path / "bad.parquet", "x", 1_700_000_000)
    assert "columns are not read: " in opened.systems.files(str(tmp_path / "bad.parquet")).unread[0]
    assert opened.versions(str(tmp_path / "bad.parquet")).versions[0].version
    for path in ("missing.csv", "s3://lake/orders"):
        with pytest.raises(InvalidRequestError):
            opened.systems.files(path)


def test_the_command_prints_the_version(tmp_path: Path) -> None:
    write(tmp_path / "users.csv", "id\n1\n", 1_700_000_000)
    done = downriver("capture", "files", "users.csv", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["runs"] == 1, done.stderr
    shown = downriver("versions", "users.csv", cwd=tmp_path)
    assert "WRITE · 1 row" in shown.stdout, shown.stdout + shown.stderr
