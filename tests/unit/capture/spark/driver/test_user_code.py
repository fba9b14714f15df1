"""Which data is written in the code of a job, and which values its code contains."""

from __future__ import annotations

import linecache
import sys
from typing import TYPE_CHECKING, Any

import pytest

from downriver.capture.spark.driver.user_code import (
    contains_together,
    user_frame,
    value_text,
    writes_its_data,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

CELL = "<a cell of a notebook>"


class Session:
    """Has the method that Spark's session has."""

    def createDataFrame(self, *args: Any, **kwargs: Any) -> bool:  # noqa: N802
        del args, kwargs
        return writes_its_data(user_frame(sys._getframe(1)))


@pytest.fixture
def cell() -> Iterator[Any]:
    def run(code: str) -> bool:
        lines = code.splitlines(keepends=True)
        linecache.cache[CELL] = (len(code), None, lines, CELL)
        names: dict[str, Any] = {"spark": Session(), "fetch": lambda: [(1,)]}
        exec(compile(code, CELL, "exec"), names)
        return bool(names["found"])

    yield run
    linecache.cache.pop(CELL, None)


@pytest.mark.parametrize(
    "code",
    [
        'found = spark.createDataFrame([(1, "a"), (2, "b")], ["id", "name"])',
        'rows = [(1, "a")]\nfound = spark.createDataFrame(rows)',
        "found = spark.createDataFrame(\n    data=[\n        (-1, 2.5),\n    ],\n)",
        "found = spark.createDataFrame([(n, f'name {n}') for n in range(3)])",
        "from datetime import date\nfound = spark.createDataFrame([(date(2026, 1, 1),)])",
    ],
)
def test_data_of_the_code(cell: Any, code: str) -> None:
    assert cell(code)


@pytest.mark.parametrize(
    "code",
    [
        "found = spark.createDataFrame(fetch())",
        "rows = fetch()\nfound = spark.createDataFrame(rows)",
        "rows = []\nrows = fetch()\nfound = spark.createDataFrame(rows)",
        "found = spark.createDataFrame([(row[0], 1) for row in fetch()])",
        "def load(rows):\n    return spark.createDataFrame(rows)\nfound = load([(1,)])",
    ],
)
def test_data_from_elsewhere(cell: Any, code: str) -> None:
    assert not cell(code)


def test_code_without_source_writes_no_data() -> None:
    names: dict[str, Any] = {"spark": Session()}
    exec(compile("found = spark.createDataFrame([(1,)])", "<no source>", "exec"), names)
    assert names["found"] is False


def test_values_in_lists_and_in_sql(cell: Any) -> None:
    lines = [
        "found = 1",
        "ids = [70001, 70003]",
        "other = 70005",
        "sql = \"SELECT * FROM t WHERE city IN ('Unterhaching', 'Bad Tölz') AND n > 70007\"",
    ]
    cell("\n".join(lines))
    assert contains_together({"70001.0", "70003.0"})
    assert contains_together({"70005.0"})
    assert contains_together({"Unterhaching", "Bad Tölz"})
    assert contains_together({"70007.0"})
    # This file is code of the job, too, so the values are computed.
    assert not contains_together({f"{70_000 + 1}.0", f"{70_000 + 5}.0"})
    assert not contains_together({f"{70_000 + 9}.0"})


def test_equal_values_have_equal_texts() -> None:
    assert value_text(5) == value_text("5") == value_text(5.0)
    assert value_text("2026-01-01 00:00:00") == "2026-01-01"
    assert value_text(None) is value_text(True) is value_text([1]) is None
