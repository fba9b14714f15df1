"""Fixtures of the lake's tests."""

from __future__ import annotations

import gc
import warnings
from typing import TYPE_CHECKING

import pytest
from tests.unit.lake.orders import FIRST, SECOND, lines, make

from downriver.lake.bronze import few_events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from downriver.lake.runner import Lake


@pytest.fixture(autouse=True)
def _no_sockets_left() -> Iterator[None]:
    """PySpark leaves the sockets it fetched rows through to the collector; not to the next test."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def built(spark, tmp_path_factory) -> Lake:
    """A lake that took in two files one after the other, each followed by a build."""
    folder = tmp_path_factory.mktemp("events")
    lake = make(tmp_path_factory.mktemp("lake"), spark)
    (folder / "first.jsonl").write_bytes(lines(*FIRST, FIRST[0]) + b"nonsense\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_events, "FEW_BYTES", -1)  # the first ingest is one of Spark
        first = lake.ingest([str(folder)])
    assert (first.rows_in, first.rows_out, first.duplicates, first.rejected) == (5, 3, 1, 1)
    lake.build()
    (folder / "second.jsonl").write_bytes(lines(FIRST[1], *SECOND))
    second = lake.ingest([str(folder)])
    assert (second.rows_in, second.rows_out, second.duplicates, second.rejected) == (3, 2, 1, 0)
    again = lake.ingest([str(folder)])
    assert (again.rows_in, again.rows_out) == (0, 0)
    lake.build()
    return lake
