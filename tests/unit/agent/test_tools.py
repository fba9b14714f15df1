"""The tools: answers have a limited size, and nothing is cut off silently."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import jsonschema
import msgspec
import pytest

from downriver import lineage
from downriver.agent import TOOLS
from downriver.agent.tools import ToolContext
from downriver.agent.tools.entity_names import is_near
from downriver.agent.tools.tool import MAX_CHARACTERS, page, page_text
from downriver.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TABLES = 600
_BY_NAME = {tool.name: tool for tool in TOOLS}


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolContext]:
    root: Path = tmp_path_factory.mktemp("tools")
    tracker = lineage(str(root / "store"))
    tracker.sync.register_flows(
        [
            {
                "source_id": "table:hub",
                "target_id": f"table:a_rather_long_name_of_a_consumer_{number:04}",
                "transformation": "copied for a team that asked for it",
            }
            for number in range(TABLES)
        ]
    )
    tracker.sync.capture_sql_lineage("INSERT INTO sums SELECT a + b AS c FROM hub")
    yield ToolContext(tracker, None, root)
    tracker.sync.close()


def call(context: ToolContext, name: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool, and check its answer against its schema."""
    tool = _BY_NAME[name]
    answer = msgspec.to_builtins(asyncio.run(tool.call(context, arguments)))
    jsonschema.validate(answer, tool.output_schema())
    jsonschema.validate(arguments, tool.input_schema())
    return answer


QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("search_entities", {"text": "consumer", "limit": 200}),
    ("get_entity", {"entity_id": "hub"}),
    ("trace_downstream", {"entity_id": "hub", "limit": 200}),
    ("trace_upstream", {"entity_id": "sums"}),
    ("get_column_lineage", {"dataset": "sums", "column": "c"}),
    ("find_paths", {"source_id": "hub", "target_id": "sums"}),
    ("analyze_impact", {"entity_id": "hub", "change_type": "deletion", "limit": 200}),
    ("gate_change", {"entity_id": "hub", "description": "drop the table"}),
    ("suggest_fix", {"entity_id": "hub.a", "description": "rename it to z"}),
    ("diagnose_metric", {"dataset": "sums", "column": "c"}),
    ("incident_report", {"entity_id": "hub"}),
    ("kpis", {}),
    ("export_lineage", {"entity_id": "hub"}),
    ("export_lineage", {"entity_id": "hub", "format": "json"}),
    ("describe_pipeline", {"text": "a feeds b\nblah blah", "dry_run": True}),
]


@pytest.mark.parametrize(("name", "arguments"), QUESTIONS)
def test_an_answer_about_a_large_graph_is_bounded(
    context: ToolContext, name: str, arguments
) -> None:
    answer = call(context, name, **arguments)
    assert len(msgspec.json.encode(answer)) < 3 * MAX_CHARACTERS


@pytest.mark.parametrize(
    ("name", "arguments", "items", "total"),
    [
        ("trace_downstream", {"entity_id": "hub"}, "entities", "total"),
        (
            "analyze_impact",
            {"entity_id": "hub", "change_type": "deletion"},
            "affected_entities",
            "total_affected_count",
        ),
    ],
)
def test_all_pages_add_up_to_the_whole_answer(
    context: ToolContext, name, arguments, items, total
) -> None:
    seen: list[str] = []
    cursor = None
    while True:
        answer = call(context, name, **arguments, limit=200, cursor=cursor)
        seen += [entity["id"] for entity in answer[items]]
        cursor = answer["next_cursor"]
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == answer[total]
    assert len(seen) >= TABLES


def test_parts_of_a_diagram_add_up_to_the_diagram(context: ToolContext) -> None:
    text, cursor = "", None
    while True:
        answer = call(context, "export_lineage", entity_id="hub", cursor=cursor)
        text += answer["text"]
        cursor = answer["next_cursor"]
        if cursor is None:
            break
    assert text == asyncio.run(context.tracker.export_lineage("hub")).diagram
    assert len(text) == answer["total_characters"]


def test_an_item_larger_than_a_page_is_shown_alone() -> None:
    large = "x" * (2 * MAX_CHARACTERS)
    found = page([large, "small"], None, 10)
    assert found.items == [large]
    assert page([large, "small"], found.next_cursor, 10).items == ["small"]
    assert page_text(large, None) == (large[:MAX_CHARACTERS], str(MAX_CHARACTERS))


@pytest.mark.parametrize("cursor", ["x", "-1", "9" * 10, "²"])
def test_an_invalid_cursor_is_refused(context: ToolContext, cursor: str) -> None:
    with pytest.raises(InvalidRequestError, match="cursor"):
        call(context, "trace_downstream", entity_id="hub", cursor=cursor)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("trace_downstream", {}),
        ("trace_downstream", {"entity_id": 3}),
        ("trace_downstream", {"entity_id": "hub", "limit": 0}),
        ("trace_downstream", {"entity_id": "hub", "max_depth": 0}),
        ("register_pipeline", {"name": "x", "steps": []}),
        ("analyze_impact", {"entity_id": "hub", "change_type": "poetry"}),
        ("export_lineage", {"entity_id": "hub", "format": "oil"}),
    ],
)
def test_invalid_arguments_are_refused(context: ToolContext, name: str, arguments) -> None:
    with pytest.raises(InvalidRequestError):
        asyncio.run(_BY_NAME[name].call(context, arguments))


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_tool_is_described_with_schemas_of_objects(tool) -> None:
    assert len(tool.description) > 20
    for schema in (tool.input_schema(), tool.output_schema()):
        assert schema["type"] == "object"
        jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize(
    ("written", "known", "near"),
    [
        ("table:raw_custmers", "raw_customers", True),
        ("table:raw_customer", "raw_customers", True),
        ("table:RawCustomers", "raw_customers", True),
        ("table:orders_v1", "orders_v2", False),
        ("table:orders_2023", "orders_2024", False),
        ("table:raw_orders", "raw_events", False),
        ("table:abc", "abd", False),
    ],
)
def test_similar_names_differ_in_letters_not_in_digits(written, known, near) -> None:
    assert is_near(written, known) is near
