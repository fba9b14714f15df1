"""Schemas of files and of events, and the readers that a new schema breaks."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.cli.command import downriver
from tests.unit.govern.scenario import output, run, schema, told
from tests.unit.http.test_app import TestClient

from downriver.errors import InvalidRequestError
from downriver.govern.schemas import check_compatibility, parse_schema, read_schema_file
from downriver.govern.schemas.compatibility import SchemaComparison
from downriver.http import build_app
from downriver.model.trust.schemas import CompatibilityMode, DeclaredColumn
from downriver.service import Lineage

if TYPE_CHECKING:
    from pathlib import Path

AVRO = {
    "type": "record", "name": "Order", "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9,
                                   "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "address", "type": {"type": "record", "name": "Address", "fields": [
            {"name": "city", "type": "string"}]}},
        {"name": "bill_to", "type": "shop.Address"},
        {"name": "lines", "type": {"type": "array", "items": {"type": "record", "name": "Line",
            "fields": [{"name": "sku", "type": "string"}, {"name": "order", "type": "Order"}]}}},
    ],
}  # fmt: skip
JSON_SCHEMA = {
    "type": "object",
    "required": ["id"],
    "properties": {
        "id": {"type": "integer"},
        "note": {"type": ["string", "null"]},
        "at": {"type": "string", "format": "date-time"},
        "address": {"$ref": "#/$defs/address"},
        "parent": {"$ref": "#"},
    },
    "$defs": {"address": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
PROTO = """
syntax = "proto3";  // a comment
package shop;
import "google/protobuf/timestamp.proto";
option (my.option) = { text: "}" };
/* message Not { int32 here = 1; } */
message Order {
  reserved 4, 10 to 12;
  int64 id = 1 [(rules).int64 = {gt: 0}, deprecated = false];
  optional string note = 2;
  google.protobuf.Timestamp at = 3;
  message Line { string sku = 1; Order order = 2; }
  repeated Line lines = 5;
  map<string, int32> counts = 6;
  oneof payment { string card = 7; bool cash = 8; }
  enum State { NEW = 0; DONE = 1; }
  State state = 9;
  repeated string message = 13;
}
service Shop { rpc Get (Order) returns (Order) { option deprecated = true; } }
"""


def shown(text: str, suffix: str, **more: Any) -> list[tuple[str, str, bool | None]]:
    return [(c.name, c.shown_type, c.required) for c in parse_schema(text, suffix, "f", **more)]


def test_an_avro_record_has_columns() -> None:
    assert shown(json.dumps(AVRO), ".avsc") == [
        ("id", "bigint", True),
        ("note", "text", False),
        ("price", "decimal(9,2)", True),
        ("at", "timestamp", True),
        ("address", "struct", True),
        ("address.city", "text", True),
        ("bill_to", "struct", True),
        ("bill_to.city", "text", True),
        ("lines", "array<struct>", True),
        ("lines.sku", "text", True),
        ("lines.order", "struct", True),
        *[(f"lines.order.{name}", kind, required) for name, kind, required in [
            ("id", "bigint", True), ("note", "text", False), ("price", "decimal(9,2)", True),
            ("at", "timestamp", True), ("address", "struct", True),
            ("address.city", "text", True), ("bill_to", "struct", True),
            ("bill_to.city", "text", True), ("lines", "array<struct>", True),
        ]],
    ]  # fmt: skip


def test_a_json_schema_has_columns() -> None:
    assert shown(json.dumps(JSON_SCHEMA), ".json") == [
        ("id", "integer", True),
        ("note", "string", False),
        ("at", "timestamp", False),
        ("address", "object", False),
        ("address.city", "string", False),
        ("parent", "object", False),
    ]


def test_a_protobuf_message_has_columns() -> None:
    assert shown(PROTO, ".proto") == [
        ("id", "bigint", False),
        ("note", "text", False),
        ("at", "timestamp", False),
        ("lines", "array<struct>", False),
        ("lines.sku", "text", False),
        ("lines.order", "struct", False),
        *[(f"lines.order.{name}", kind, False) for name, kind in [
            ("id", "bigint"), ("note", "text"), ("at", "timestamp"), ("lines", "array<struct>"),
            ("counts", "map"), ("card", "text"), ("cash", "boolean"), ("state", "text"),
            ("message", "array<text>"),
        ]],
        ("counts", "map", False),
        ("card", "text", False),
        ("cash", "boolean", False),
        ("state", "text", False),
        ("message", "array<text>", False),
    ]  # fmt: skip
    assert shown(PROTO, ".proto", message="Order.Line")[0] == ("sku", "text", False)
    proto2 = 'syntax = "proto2"; message A { required int32 x = 1; }'
    assert shown(proto2, ".proto") == [("x", "int", True)]


def test_types_are_found_by_every_name_that_protobuf_allows() -> None:
    text = """
    syntax = "proto3";
    package shop.v1;
    message Order {
      shop.v1.Kind a = 1;
      .shop.v1.Kind b = 2;
      v1.Kind c = 3;
      Order.Line d = 4;
      google.type.Decimal e = 5;
      other.v1.Missing f = 6;
      message Line { Kind kind = 1; }
    }
    enum Kind { A = 0; }
    """
    found = [(name, kind) for name, kind, _ in shown(text, ".proto", message="shop.v1.Order")]
    assert found == [
        ("a", "text"),
        ("b", "text"),
        ("c", "text"),
        ("d", "struct"),
        ("d.kind", "text"),
        ("e", "decimal"),
        ("f", "unknown"),
    ]
    assert shown(text, ".proto") == shown(text, ".proto", message="Order")


def test_imported_files_are_read_beside_the_file_and_below_the_root_of_its_package(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "shop" / "v1"
    folder.mkdir(parents=True)
    (folder / "beside.proto").write_text('import "order.proto"; message Note { string text = 1; }')
    (folder / "kinds.proto").write_text("package shop.v1; enum Kind { A = 0; }")
    (tmp_path / "outside.proto").write_text("message Outside { string x = 1; }")
    order = folder / "order.proto"
    head = 'package shop.v1; import "beside.proto"; import public "shop/v1/kinds.proto"; '
    order.write_text(
        head + 'import "../../outside.proto"; import "gone.proto";'
        "message Order { Note note = 1; Kind kind = 2; Outside x = 3; Gone y = 4; }"
    )
    assert [(c.name, c.shown_type) for c in read_schema_file(order)] == [
        ("note", "struct"),
        ("note.text", "text"),
        ("kind", "text"),
        ("x", "unknown"),
        ("y", "unknown"),
    ]
    (folder / "beside.proto").write_text("message {")
    with pytest.raises(InvalidRequestError, match=r"beside\.proto"):
        read_schema_file(order)


_WIDE = {
    f"T{depth}": {"properties": {name: {"$ref": f"#/$defs/T{depth + 1}"} for name in "abcdef"}}
    for depth in range(30)
}


@pytest.mark.parametrize(
    ("text", "suffix"),
    [
        ("{", ".avsc"),
        ('"string"', ".avsc"),
        ('{"type": "record", "fields": [{"name": "a", "type": "Missing"}]}', ".avsc"),
        ('{"type": "record", "fields": []}', ".avsc"),
        ("[" * 100_000, ".avsc"),
        ('{"type": "string"}', ".json"),
        ('{"properties": {"a": {"$ref": "other.json"}}}', ".json"),
        ('{"properties": {"a": {"$ref": "#/properties/a"}}}', ".json"),
        (json.dumps({"$ref": "#/$defs/T0", "$defs": {**_WIDE, "T30": {}}}), ".json"),
        ("message A { int32 x = 1; ", ".proto"),
        ("message A { int32 x } ", ".proto"),
        ("message A {} message B {}", ".proto"),
        ("message A { int32 x = 1; } @", ".proto"),
        ("a,b", ".csv"),
    ],
)
def test_a_file_that_declares_no_columns_is_an_error(text: str, suffix: str) -> None:
    with pytest.raises(InvalidRequestError):
        parse_schema(text, suffix, "file")


def column(name: str, kind: str = "int", required: bool | None = None) -> DeclaredColumn:
    return DeclaredColumn(name=name, type=kind, required=required)


@pytest.mark.parametrize(
    ("old", "new", "broken"),
    [
        ([column("a")], [column("A")], []),
        ([column("a")], [column("a"), column("b")], []),
        ([column("a")], [column("a"), column("b", required=False)], []),
        ([column("a")], [column("a"), column("b", required=True)], ["backward b"]),
        ([column("a"), column("b")], [column("a")], ["forward b"]),
        ([column("a"), column("b", required=False)], [column("a")], []),
        ([column("a", "int")], [column("a", "bigint")], ["forward a"]),
        ([column("a", "bigint")], [column("a", "int")], ["backward a"]),
        ([column("a", "text")], [column("a", "int")], ["backward a", "forward a"]),
        ([column("a", "int")], [DeclaredColumn(name="a", logical_type="integer")], []),
        ([column("a", "text")], [DeclaredColumn(name="a", logical_type="integer")],
         ["backward a", "forward a"]),
        ([column("a", "array<int>")], [DeclaredColumn(name="a", logical_type="array")], []),
        ([column("a", "")], [column("a", "int")], []),
    ],
)  # fmt: skip
def test_a_mode_names_the_readers_that_break(old: Any, new: Any, broken: list[str]) -> None:
    found = check_compatibility(SchemaComparison(old, new), CompatibilityMode.FULL)
    assert [f"{each.direction} {each.column.lower()}" for each in found] == broken
    for mode in (CompatibilityMode.BACKWARD, CompatibilityMode.FORWARD):
        one = check_compatibility(SchemaComparison(old, new), mode)
        assert one == [each for each in found if each.direction == mode.value]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    events = [
        *run("load", 0, writes=[output("orders", schema(id="int", note="text"))]),
        *run("load", 1, writes=[output("orders", schema(id="bigint", price="numeric"))]),
    ]
    with told(tmp_path, events):
        pass
    return tmp_path


def test_the_commands_show_versions_and_check_them(store: Path) -> None:
    at = ("--store", str(store))
    done = downriver("schema", "history", "orders", *at, cwd=store)
    assert done.stdout.count("version") == 2
    assert "version 2 current" in done.stdout
    done = downriver("schema", "diff", "orders", *at, "--json", cwd=store)
    found = json.loads(done.stdout)
    assert [c["name"] for c in found["added"]] == ["price"]
    assert [c["name"] for c in found["removed"]] == ["note"]
    assert found["retyped"] == [{"name": "id", "from": "int", "to": "bigint"}]
    assert downriver("schema", "check", "orders", *at, cwd=store).returncode == 0
    done = downriver("schema", "check", "orders", "--mode", "forward", *at, cwd=store)
    assert (done.returncode, done.stdout.count("forward")) == (1, 3)
    (store / "o.proto").write_text("message O { int64 id = 1; double price = 2; bytes x = 3; }")
    done = downriver("schema", "check", "orders", "--against", "o.proto", *at, cwd=store)
    assert (done.returncode, "price" in done.stdout) == (1, True)
    (store / "o.proto").write_text("message O { int64 id = 1; other.Price price = 2; }")
    done = downriver("schema", "check", "orders", "--against", "o.proto", *at, cwd=store)
    assert "unknown (backward) orders" in done.stdout
    assert "the type of price is unknown in o.proto" in done.stdout
    done = downriver("schema", "diff", "orders", "--new", "9", *at, cwd=store)
    assert (done.returncode, "it has 1 to 2" in done.stderr) == (2, True)


def test_the_mode_of_the_contract_is_the_default(store: Path) -> None:
    (store / "c.yml").write_text("dataset: orders\ncompatibility: forward\n")
    assert downriver("contracts", "apply", "c.yml", "--store", str(store), cwd=store)[0] == 0
    assert downriver("schema", "check", "orders", "--store", str(store), cwd=store)[0] == 1


def test_the_routes_compare_and_check(store: Path) -> None:
    with Lineage.open(str(store)) as lineage, TestClient(build_app(lineage)) as client:
        asked = {"dataset": "orders", "old": "2", "new": "1"}
        found = client.get("/v1/schema-diff", params=asked).json()
        assert [c["name"] for c in found["added"]] == ["note"]
        declared = {"type": "record", "name": "o", "fields": [{"name": "id", "type": "int"}]}
        body = {"dataset": "orders", "mode": "full", "schema": json.dumps(declared)}
        found = client.post("/v1/schema-check", json=body).json()
        assert [(i["column"], i["direction"]) for i in found["incompatibilities"]] == [
            ("id", "backward"),
            ("price", "forward"),
        ]
        body = {"dataset": "orders", "schema": "message", "format": "protobuf"}
        assert client.post("/v1/schema-check", json=body).status_code == 400
        assert client.get("/v1/schema-diff", params={"dataset": "load"}).status_code == 400
