"""Requests to a server of Spark Connect: which of them change the meaning of a name."""

from __future__ import annotations

import pytest
from pyspark.sql.connect import proto

from downriver.capture.spark.connect.requests import changes_names

CALLS = [field.name for field in proto.Catalog.DESCRIPTOR.fields]
CHANGING = {
    "set_current_database",
    "create_external_table",
    "create_table",
    "drop_temp_view",
    "drop_global_temp_view",
    "recover_partitions",
    "refresh_table",
    "refresh_by_path",
    "set_current_catalog",
}


@pytest.mark.parametrize("call", CALLS)
def test_a_call_of_the_catalog_changes_names_or_not(call: str) -> None:
    plan = proto.Plan()
    getattr(plan.root.catalog, call).SetInParent()
    assert changes_names(plan) == (call in CHANGING)


def test_a_view_changes_names_and_a_read_does_not() -> None:
    command = proto.Command()
    command.create_dataframe_view.name = "v"
    assert changes_names(command)
    assert changes_names(proto.Plan(command=command))
    read = proto.Plan()
    read.root.read.named_table.unparsed_identifier = "t"
    assert not changes_names(read)
