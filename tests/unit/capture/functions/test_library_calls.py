"""The reads and writes of data libraries inside a function with `auto=True` are recorded."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.unit.capture.functions.test_decorator import Collected

from downriver import track_lineage


@pytest.fixture
def sent():
    return Collected()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"id": [1, 2], "amount": [3.0, 4.0]}).to_parquet("raw.parquet")
    pd.DataFrame({"id": [1, 2], "amount": [3.0, 4.0]}).to_csv("raw.csv", index=False)
    return tmp_path


def moved(sent):
    complete = sent.events[-1]
    assert complete["eventType"] == "COMPLETE"
    return tuple(
        sorted(Path(data["name"]).name for data in complete[side]) for side in ("inputs", "outputs")
    )


def run(sent, function):
    track_lineage(emitter=sent, auto=True)(function)()
    return moved(sent)


def test_pandas(sent, folder):
    def job():
        frame = pd.read_parquet("raw.parquet")
        more = pd.read_csv(filepath_or_buffer=Path("raw.csv"))
        pd.concat([frame, more]).to_parquet("out.parquet")
        frame.to_csv("out.csv")

    assert run(sent, job) == (["raw.csv", "raw.parquet"], ["out.csv", "out.parquet"])
    names = {data["name"] for data in sent.events[-1]["inputs"]}
    assert str(folder / "raw.csv") in names
    written = {Path(data["name"]).name: data for data in sent.events[-1]["outputs"]}
    assert written["out.parquet"]["outputFacets"]["outputStatistics"]["rowCount"] == 4
    assert [f["name"] for f in written["out.csv"]["facets"]["schema"]["fields"]] == ["id", "amount"]


def test_pandas_and_a_database(sent, folder):
    import sqlite3

    def job():
        with sqlite3.connect("shop.db") as connection:
            pd.read_csv("raw.csv").to_sql("orders", connection, index=False)
            pd.read_sql("SELECT o.id FROM orders o JOIN items i USING (id)", connection)

    sqlite3.connect("shop.db").execute("CREATE TABLE items (id)").connection.close()
    assert run(sent, job) == (["items", "raw.csv"], ["orders"])


def test_polars_eager_and_lazy(sent, folder):
    def job():
        pl.read_csv("raw.csv").write_parquet("eager.parquet")
        pl.scan_parquet("raw.parquet").filter(pl.col("id") > 1).sink_parquet("lazy.parquet")

    assert run(sent, job) == (["raw.csv", "raw.parquet"], ["eager.parquet", "lazy.parquet"])


def test_pyarrow(sent, folder):
    def job():
        table = pyarrow.parquet.read_table("raw.parquet")
        pyarrow.parquet.write_table(table, "out.parquet")
        pyarrow.csv.write_csv(pyarrow.csv.read_csv("raw.csv"), "out.csv")

    assert run(sent, job) == (["raw.csv", "raw.parquet"], ["out.csv", "out.parquet"])


def test_duckdb(sent, folder):
    def job():
        with duckdb.connect() as connection:
            connection.execute("CREATE TABLE orders AS SELECT * FROM 'raw.parquet'")
            connection.sql("SELECT id FROM orders").write_parquet("out.parquet")
            connection.execute("COPY orders TO 'copy.csv'")
        duckdb.sql("SELECT count(*) FROM read_csv('raw.csv')").fetchall()

    assert run(sent, job) == (
        ["raw.csv", "raw.parquet"],
        ["copy.csv", "orders", "out.parquet"],
    )


def test_a_frame_that_duckdb_reads_by_name_is_no_table(sent, folder):
    def job():
        orders = pd.read_csv("raw.csv")
        duckdb.sql("SELECT sum(amount) FROM orders").fetchall()
        return orders

    assert run(sent, job) == (["raw.csv"], [])


def test_a_library_imported_inside_the_function_is_recorded(folder):
    script = """
import sys
from downriver import track_lineage

class Sent:
    def emit(self, event):
        self.last = event

sent = Sent()

@track_lineage(emitter=sent, auto=True)
def job():
    assert "polars" not in sys.modules
    import polars as pl
    pl.read_csv("raw.csv").write_parquet("out.parquet")

job()
print(len(sent.last["inputs"]), len(sent.last["outputs"]))
import polars
print(polars.read_csv.__module__, type(polars.__spec__.loader).__module__)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[0] == "1 1"
    assert "downriver" not in done.stdout.splitlines()[1]


def test_buffers_are_no_datasets(sent, folder):
    import io

    def job():
        pd.read_csv(io.StringIO("a\n1\n")).to_csv(io.StringIO())

    assert run(sent, job) == ([], [])


def test_the_libraries_are_restored_after_a_call(sent, folder):
    before = (pd.read_csv, pd.DataFrame.to_parquet, pl.scan_csv, duckdb.sql)

    def job():
        assert pd.read_csv is not before[0]

    run(sent, job)
    assert (pd.read_csv, pd.DataFrame.to_parquet, pl.scan_csv, duckdb.sql) == before


def test_the_libraries_are_restored_after_a_failure(sent, folder):
    before = pd.read_csv

    def job():
        pd.read_csv("missing.csv")

    with pytest.raises(FileNotFoundError):
        run(sent, job)
    assert pd.read_csv is before


def test_reads_of_another_thread_are_not_recorded(sent, folder):
    started, over = threading.Event(), threading.Event()

    def elsewhere():
        started.wait(10)
        pd.read_parquet("raw.parquet")
        over.set()

    thread = threading.Thread(target=elsewhere)
    thread.start()

    def job():
        started.set()
        over.wait(10)
        pd.read_csv("raw.csv")

    assert run(sent, job) == (["raw.csv"], [])
    thread.join()


def test_concurrent_coroutines_record_their_own_reads(sent, folder):
    @track_lineage(emitter=sent, auto=True)
    async def read(name):
        await asyncio.sleep(0.01)
        pd.read_csv(name) if name.endswith("csv") else pd.read_parquet(name)
        await asyncio.sleep(0.01)

    async def both():
        await asyncio.gather(read("raw.csv"), read("raw.parquet"))

    asyncio.run(both())
    done = [event for event in sent.events if event["eventType"] == "COMPLETE"]
    assert [len(event["inputs"]) for event in done] == [1, 1]


def test_declared_and_recorded_datasets_are_united(sent, folder):
    @track_lineage(["api:orders"], ["table:orders"], emitter=sent, auto=True)
    def job():
        return pd.read_csv("raw.csv")

    job()
    assert moved(sent) == (["orders", "raw.csv"], ["orders"])


def test_a_file_that_the_function_made_itself_is_no_input(sent, folder):
    def job():
        pd.read_csv("raw.csv").to_parquet("step.parquet")
        pd.read_parquet("step.parquet").to_parquet("out.parquet")

    assert run(sent, job) == (["raw.csv"], ["out.parquet", "step.parquet"])


def test_pyarrow_tables_have_a_schema_and_a_row_count(sent, folder):
    def job():
        pyarrow.parquet.write_table(pa.table({"x": [1]}), "out.parquet")

    run(sent, job)
    (output,) = sent.events[-1]["outputs"]
    assert output["facets"]["schema"]["fields"] == [{"name": "x", "type": "int64"}]
