"""The action in real checkpoints of Great Expectations, as PyPI has it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from downriver.capture.check_results.great_expectations import read_validations
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

SOURCES = Path(__file__).parents[2] / "src"
REQUIREMENTS = (
    "great_expectations==1.24.1",
    "sqlalchemy>=2,<2.1",
    "msgspec==0.22.0",
    "zstandard==0.25.0",
)
CHECKPOINTS = """
import json, sqlite3
import great_expectations as gx
import pandas as pd
from downriver.sdk.great_expectations import LineageAction

with sqlite3.connect("shop.db") as database:
    database.execute("CREATE TABLE orders (id int, amount int)")
    database.execute("INSERT INTO orders VALUES (1, 5), (2, NULL)")
pd.DataFrame({"id": [1], "amount": [2]}).to_csv("orders.csv", index=False)

context = gx.get_context(mode="file", project_root_dir=".")
suite = context.suites.add(gx.ExpectationSuite(name="amounts"))
suite.add_expectation(gx.expectations.ExpectColumnValuesToNotBeNull(column="amount"))
suite.add_expectation(gx.expectations.ExpectColumnValuesToBeUnique(column="missing"))
sources = context.data_sources
table = sources.add_sqlite("shop", connection_string="sqlite:///shop.db").add_table_asset(
    "orders_of_today", table_name="orders"
)
file = sources.add_pandas_filesystem("files", base_directory=".").add_csv_asset("orders_file")
frame = sources.add_pandas("memory").add_dataframe_asset("frame")
definitions = [
    context.validation_definitions.add(gx.ValidationDefinition(name=name, data=data, suite=suite))
    for name, data in {
        "table": table.add_batch_definition_whole_table("all"),
        "file": file.add_batch_definition_path("one", path="orders.csv"),
    }.items()
]
context.checkpoints.add(
    gx.Checkpoint(name="daily", validation_definitions=definitions, actions=[LineageAction()])
)
assert not context.checkpoints.get("daily").run().success

in_memory = context.validation_definitions.add(
    gx.ValidationDefinition(
        name="frame", data=frame.add_batch_definition_whole_dataframe("all"), suite=suite
    )
)
action = LineageAction(dataset="postgres://dw/shop/orders")
checkpoint = gx.Checkpoint(name="frames", validation_definitions=[in_memory], actions=[action])
context.checkpoints.add(checkpoint).run({"dataframe": pd.DataFrame({"amount": [1]})})

with open("described.json", "w") as output:
    output.write(context.checkpoints.get("daily").run().describe())
"""


@pytest.fixture(scope="module")
def home(client_python: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a store in which checkpoints were recorded, and the JSON of one result."""
    python, home = client_python(*REQUIREMENTS), tmp_path_factory.mktemp("checkpoints")
    (home / "script.py").write_text(CHECKPOINTS)
    done = subprocess.run(
        [python, "script.py"],
        cwd=home,
        env={
            "DOWNRIVER_STORE": str(home / "store"),
            "GX_ANALYTICS_ENABLED": "false",
            "HOME": str(home),
            "PATH": os.defpath,
            "PYTHONPATH": str(SOURCES),
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "Downriver failed" not in done.stderr, done.stderr[-3000:]
    return home


def test_a_checkpoint_is_a_job_that_reads_the_validated_data(home: Path) -> None:
    with Lineage.open(str(home / "store")) as lineage:
        found = {
            name: {node.id for node in lineage.trace(f"job:{name}", "upstream").nodes}
            for name in ("great-expectations:daily", "great-expectations:frames")
        }
        listed = {each.name: each.last_job for each in lineage.integrations().integrations}
    assert found["great-expectations:daily"] >= {
        "dataset:default:orders",
        f"dataset:file:{home}/orders.csv",
    }
    assert "dataset:postgres://dw:shop.orders" in found["great-expectations:frames"]
    assert (listed["great-expectations"] or "").startswith("job:great-expectations:")


def test_expectations_are_checks_of_each_dataset(home: Path) -> None:
    with Lineage.open(str(home / "store")) as lineage:
        checks = {
            name: {
                (check.assertion, check.success)
                for check in lineage.entity(name).quality  # one that raised has no result
            }
            for name in ("dataset:default:orders", f"dataset:file:{home}/orders.csv")
        }
    expectation = "expect_column_values_to_not_be_null"
    assert checks == {
        "dataset:default:orders": {(expectation, False)},
        f"dataset:file:{home}/orders.csv": {(expectation, True)},
    }


def test_the_json_that_great_expectations_writes_is_read(home: Path) -> None:
    files = list((home / "gx" / "uncommitted" / "validations").rglob("*.json"))
    by_asset = {each.asset: each for path in files for each in read_validations(path)}
    described = read_validations(home / "described.json")
    assert set(by_asset) == {"orders", "orders.csv", "frame"}
    for validations in (list(by_asset.values()), described):
        for validation in validations:
            assert validation.unread == ["expect_column_values_to_be_unique: raised an exception"]
            assert len(validation.assertions) == 1
    assert [each.assertions[0].success for each in described] == [False, True]
