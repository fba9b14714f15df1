"""The changes in meaning of edited Python and dbt files, and the affected consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.unit.impact.estate import Estate, effect_on, hurt

from downriver.impact import CommitTrees, FilePair
from downriver.model.unread import UnreadReason

if TYPE_CHECKING:
    from pathlib import Path

    from downriver.model.verdicts import Impact

SPARK = '''"""Paid orders."""
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

RATE = 0.2
spark = SparkSession.builder.appName("orders").getOrCreate()


def paid(orders):
    return orders.filter(F.col("status") == "paid")


raw = spark.table("raw.orders")
tax = F.col("amount") * RATE
out = paid(raw).withColumn("tax", tax).select("id", "tax", "amount", F.upper("name").alias("name"))
out = out.withColumn("gross", F.col("amount") + F.col("tax"))
out.write.mode("overwrite").saveAsTable("stg.orders")
'''
PANDAS = """import pandas as pd

orders = pd.read_sql("select id, total from raw.orders", con)
orders["double"] = orders["total"] * 2
orders = orders[orders["total"] > 0]
orders.to_sql("agg", con)
"""
READER = """from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
spark.table("stg.orders").select("id", "tax").write.saveAsTable("mart.taxes")
"""
COLUMNS = ["id", "status", "amount", "name", "total"]


def repository(folder: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


@pytest.fixture
def known(estate: Estate, tmp_path: Path) -> Estate:
    """A store with two jobs of a repository, and SQL elsewhere that reads their outputs."""
    estate.table("raw.orders", dict.fromkeys(COLUMNS, "int"))
    files = {"jobs/orders.py": SPARK, "jobs/agg.py": PANDAS, "jobs/taxes.py": READER}
    estate.lineage.capture.scan(repository(tmp_path / "code", files))
    estate.sql("by_id", "create table by_id as select id from stg.orders")
    estate.sql("sums", "create table sums as select sum(tax) as tax from stg.orders")
    estate.sql("doubles", 'create table doubles as select "double" from agg')
    return estate


def edit(known: Estate, *pairs: tuple[str, str | None, str | None]) -> Impact:
    return known.lineage.impact.of_files([FilePair(*pair) for pair in pairs])


def edited(known: Estate, old: str, new: str, path: str = "jobs/orders.py") -> Impact:
    text = {"jobs/orders.py": SPARK, "jobs/agg.py": PANDAS}[path]
    assert old in text
    return edit(known, (path, text, text.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Paid orders."""', '"""Orders that are paid."""\n\n# and more\n'),
        ('tax = F.col("amount") * RATE\nout = paid(raw).withColumn("tax", tax)',
         'levy = F.col("amount") * RATE\nout = paid(raw).withColumn("tax", levy)'),
        ("RATE = 0.2\n", "THE_RATE = 0.2\nRATE = THE_RATE\n"),
        ("import functions as F", "import functions as F, functions"),
        ('    return orders.filter(F.col("status") == "paid")',
         '    """Doc."""\n    kept = orders.filter(orders.status == "paid")\n    return kept'),
        ('F.col("amount") * RATE', 'raw["amount"] * RATE'),
        ('spark.table("raw.orders")', 'spark.read.table("raw.orders").cache()'),
        ("out.write", "print(out.count())\nout.write"),
        ('out.write.mode("overwrite")', 'out.orderBy("id").write.mode("overwrite")'),
    ],
    ids=["comments", "a variable", "a constant by another name", "imports", "inside a function",
         "another spelling of a column", "another way to read", "a print", "order"],
)  # fmt: skip
def test_code_that_only_looks_different_is_no_change(known: Estate, old: str, new: str) -> None:
    assert old in SPARK
    text = SPARK.replace(old, new)
    impact = edit(known, ("jobs/orders.py", SPARK, text))
    assert impact.changes == []
    assert impact.effects == []


def test_a_column_that_is_no_longer_written_breaks_its_readers(known: Estate) -> None:
    impact = edited(
        known,
        'withColumn("tax", tax).select("id", "tax", "amount", F.upper("name").alias("name"))\n'
        'out = out.withColumn("gross", F.col("amount") + F.col("tax"))',
        'withColumn("gross", F.col("amount") + tax).select("id", "gross", "amount",'
        ' F.upper("name").alias("name"))',
    )
    assert "drop stg.orders.tax" in impact.changes
    assert hurt(impact) == {"sums": "fails", "jobs/taxes": "fails"}
    assert effect_on(impact, "jobs/taxes").references[0].path == "jobs/taxes.py"


def test_a_renamed_column_is_a_rename(known: Estate) -> None:
    impact = edited(known, '.alias("name")', '.alias("customer")')
    assert impact.changes == ["rename stg.orders.name to customer"]
    assert impact.effects == []


def test_another_constant_changes_what_is_made_of_it(known: Estate) -> None:
    impact = edited(known, "RATE = 0.2", "RATE = 0.25")
    assert impact.changes == ["change the logic of stg.orders.gross, tax"]
    assert hurt(impact) == {"sums": "changes", "jobs/taxes": "changes"}


def test_another_filter_changes_the_rows(known: Estate) -> None:
    impact = edited(known, '"paid")', '"settled")')
    assert impact.changes == ["change the logic of stg.orders"]
    assert set(hurt(impact)) == {"by_id", "sums", "jobs/taxes"}


def test_a_condition_around_code_is_part_of_its_meaning(known: Estate) -> None:
    guarded = SPARK.replace("out.write", "if full:\n    out = out.limit(5)\nout.write")
    impact = edit(known, ("jobs/orders.py", guarded, guarded.replace("if full", "if not full")))
    assert impact.changes == ["change the logic of stg.orders"]


def test_an_output_that_is_no_longer_written_is_a_drop(known: Estate) -> None:
    impact = edited(known, "stg.orders", "stg.orders_v2")
    assert impact.changes == ["drop stg.orders"]
    assert hurt(impact)["by_id"] == "fails"


def test_a_job_that_moves_to_another_file_is_no_change(known: Estate) -> None:
    impact = edit(known, ("jobs/orders.py", SPARK, None), ("etl/orders_job.py", None, SPARK))
    assert impact.changes == []


def test_pandas_code_is_compared(known: Estate) -> None:
    assert edited(known, "* 2", "* 3", "jobs/agg.py").changes == ["change the logic of agg.double"]
    assert edited(known, "> 0", "> 1", "jobs/agg.py").changes == ["change the logic of agg"]
    impact = edited(known, '["double"]', '["twice"]', "jobs/agg.py")
    assert impact.changes == ["rename agg.double to twice"]
    assert hurt(impact) == {"doubles": "fails"}
    respaced = edited(known, "select id, total from", "SELECT id,\\n  total FROM", "jobs/agg.py")
    assert respaced.changes == []


def test_a_column_dropped_in_place_is_dropped(known: Estate) -> None:
    impact = edited(
        known, "orders.to_sql", 'orders.drop(columns=["double"], inplace=True)\norders.to_sql',
        "jobs/agg.py",
    )  # fmt: skip
    assert impact.changes == ["drop agg.double"]


def test_a_consumer_edited_in_the_same_commits_is_judged_by_its_new_code(known: Estate) -> None:
    renamed = SPARK.replace(
        '.select("id", "tax"', '.withColumnRenamed("tax", "vat").select("id", "vat"'
    )
    renamed = renamed.replace('F.col("tax"))', 'F.col("vat"))')
    adapted = READER.replace('"tax"', '"vat"')
    alone = edit(known, ("jobs/orders.py", SPARK, renamed))
    assert hurt(alone)["jobs/taxes"] == "fails"
    together = edit(known, ("jobs/orders.py", SPARK, renamed), ("jobs/taxes.py", READER, adapted))
    assert "jobs/taxes" not in hurt(together)
    assert hurt(together)["sums"] == "fails"


def test_a_new_job_is_no_change(known: Estate) -> None:
    impact = edit(known, ("jobs/new.py", None, SPARK.replace("stg.orders", "stg.new")))
    assert impact.changes == []
    assert impact.complete


def test_a_job_unknown_to_the_catalog_is_checked_by_its_outputs(known: Estate) -> None:
    text = READER.replace("mart.taxes", "stg.orders").replace("stg.orders", "raw.orders", 1)
    text = text.replace('"id", "tax"', '"id", "tax", "name"')
    impact = edit(known, ("other/job.py", text, text.replace(', "name"', "")))
    assert impact.changes == ["drop stg.orders.name"]
    assert not impact.complete
    assert [(u.path, u.reason) for u in impact.unread] == [
        ("other/job.py", UnreadReason.UNKNOWN_JOB)
    ]


def test_code_that_cannot_be_read_is_reported(known: Estate) -> None:
    impact = edit(known, ("jobs/orders.py", SPARK, "def (:\n"))
    assert not impact.complete
    (unread,) = impact.unread
    assert (unread.path, unread.line) == ("jobs/orders.py", 1)
    assert unread.reason is UnreadReason.PYTHON_SYNTAX


def test_code_that_does_nothing_with_data_is_no_change(known: Estate) -> None:
    impact = edit(known, ("tool.py", "print(1)\n", "print(2)\n"), ("ci.yml", "a: 1\n", "a: 2\n"))
    assert impact.changes == []
    assert impact.complete


def trees(
    folder: Path, base: dict[str, str], head: dict[str, str]
) -> tuple[list[FilePair], CommitTrees]:
    changed = sorted(p for p in base | head if base.get(p) != head.get(p))
    pairs = [FilePair(path, base.get(path), head.get(path)) for path in changed]
    return pairs, CommitTrees(repository(folder / "a", base), repository(folder / "b", head))


def test_an_edit_of_an_imported_helper_changes_the_jobs_that_import_it(
    known: Estate, tmp_path: Path
) -> None:
    helper = (
        'from pyspark.sql import functions as F\n\n\ndef tax():\n    return F.col("amount") * 2\n'
    )
    job = SPARK.replace("RATE = 0.2", "from jobs.taxing import tax as made")
    job = job.replace('tax = F.col("amount") * RATE', "tax = made()")
    base = {"jobs/taxing.py": helper, "jobs/orders.py": job}
    pairs, around = trees(tmp_path, base, base | {"jobs/taxing.py": helper.replace("2", "3")})
    impact = known.lineage.impact.of_files(pairs, around)
    assert impact.changes == ["change the logic of stg.orders.gross, tax"]


DBT = {
    "dbt_project.yml": "name: shop\nvars: {least: 5}\n",
    "macros/money.sql": "{% macro cents(c) %}({{ c }} * 100){% endmacro %}\n",
    "models/sources.yml": (
        "sources:\n  - name: raw\n    tables:\n      - name: orders\n"
        "        columns:\n          - name: id\n          - name: amount\n"
    ),
    "models/stg.sql": (
        "select id, {{ cents('amount') }} as cents from {{ source('raw', 'orders') }}\n"
    ),
    "models/mart.sql": "select cents from {{ ref('stg') }}\n",
    "models/big.sql": "select cents from {{ ref('mart') }} where cents > {{ var('least') }}\n",
}


@pytest.fixture
def project(estate: Estate, tmp_path: Path) -> Estate:
    estate.table("raw.orders", {"id": "int", "amount": "int"})
    estate.lineage.capture.scan(repository(tmp_path / "project", DBT))
    return estate


@pytest.mark.parametrize(
    ("path", "old", "new", "changes", "who"),
    [
        ("macros/money.sql", "100", "1000", ["change the logic of stg.cents"],
         {"stg": "changes", "mart": "changes", "big": "changes"}),
        ("macros/money.sql", "* 100", "*  100", [], {}),
        ("models/stg.sql", "id, ", "", ["drop stg.id"], {}),
        ("models/sources.yml", "name: amount", "name: total",
         ["rename raw.orders.amount to total"],
         {"stg": "fails", "mart": "not_rebuilt", "big": "not_rebuilt"}),
        ("models/sources.yml", "- name: id", "- name: id\n            description: key", [], {}),
        ("models/sources.yml", "- name: orders", "- name: orders\n        identifier: sales",
         ["change the logic of stg"],
         {"stg": "changes", "mart": "changes", "big": "changes"}),
        ("dbt_project.yml", "least: 5", "least: 50", ["change the logic of big"],
         {"big": "changes"}),
    ],
    ids=["macro", "a macro's layout", "model", "a source's column", "a description", "a source's "
         "table", "a variable"],
)  # fmt: skip
def test_a_dbt_project_is_compared(
    project: Estate, tmp_path: Path, path: str, old: str, new: str, changes: list[str],
    who: dict[str, str],
) -> None:  # fmt: skip
    assert old in DBT[path]
    pairs, around = trees(tmp_path, DBT, DBT | {path: DBT[path].replace(old, new)})
    impact = project.lineage.impact.of_files(pairs, around)
    assert impact.changes == changes
    assert hurt(impact) == who


def test_a_seed_is_compared_by_its_header_and_rows(estate: Estate) -> None:
    estate.table("countries", {"code": "text", "name": "text"})
    estate.sql("names", "create table names as select name from countries")
    base = "code,name\nde,Germany\n"
    for head, changes in (
        (base.replace("name\n", "label\n"), ["rename countries.name to label"]),
        ("code\nde\n", ["drop countries.name", "change the logic of countries"]),
        (f"{base}fr,France\n", ["change the logic of countries"]),
        (base.replace("\n", "\r\n"), []),
    ):
        impact = edit(estate, ("seeds/countries.csv", base, head))
        assert impact.changes == changes
