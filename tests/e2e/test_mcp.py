"""MCP with the official client, over both transports."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import TextContent
from tests.server import running_server
from tests.unit.cli.command import downriver

from downriver import lineage_sync
from downriver.agent import TOOLS
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

WANTED = {
    "search_entities", "get_entity", "trace_upstream", "trace_downstream", "get_column_lineage",
    "find_paths", "analyze_impact", "gate_change", "suggest_fix", "diagnose_metric",
    "incident_report", "kpis", "register_flow", "register_pipeline", "describe_pipeline",
    "capture_sql_lineage", "export_lineage", "shared_lineage", "tag_reach",
}  # fmt: skip
WRITES = {"register_flow", "register_pipeline", "describe_pipeline", "capture_sql_lineage"}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "store"
    with Lineage.open(str(path)):
        tracker = lineage_sync(str(path))
        tracker.register_pipeline(
            "orders",
            [
                {"source_id": "api:shop", "target_id": "table:raw_orders"},
                {"source_id": "table:raw_orders", "target_id": "table:orders_clean"},
                {"source_id": "table:orders_clean", "target_id": "table:revenue_daily"},
            ],
        )
        tracker.capture_sql_lineage(
            "INSERT INTO order_totals SELECT order_id, qty * price AS total FROM orders_clean"
        )
        tracker.close()
    return path


def on_pipe(store: Path, *options: str) -> StdioServerParameters:
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "downriver", "mcp", "--store", str(store), *options],
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        cwd=store.parent,
    )


@asynccontextmanager
async def over_http(url: str, key: str | None = None, mode: str = "auto") -> AsyncIterator[Client]:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(f"{url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            yield client


async def use(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool, and check that its text and its structured content are equal."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert isinstance(content, TextContent)
    assert not result.is_error, content.text
    assert json.loads(content.text) == result.structured_content
    return result.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def test_all_documented_tools_are_listed() -> None:
    assert {tool.name for tool in TOOLS} == WANTED
    assert {tool.name for tool in TOOLS if tool.writes} == WRITES


async def ask_everything(client: Client) -> None:
    """Call every tool that reads. The client validates the answers against their schemas."""
    found = await use(client, "search_entities", text="orders", limit=1)
    assert found["total"] >= 2
    assert found["next_cursor"] == "1"
    entity = await use(client, "get_entity", entity_id="orders_clean")
    assert entity["upstream_count"] == 1
    up = await use(client, "trace_upstream", entity_id="revenue_daily")
    assert up["ends"] == ["api:shop"]
    assert up["complete"] is True
    down = await use(client, "trace_downstream", entity_id="api:shop", limit=2)
    assert down["total"] > 2
    assert len(down["entities"]) == 2
    rest = await use(client, "trace_downstream", entity_id="api:shop", cursor=down["next_cursor"])
    assert len(rest["entities"]) == down["total"] - 2
    column = await use(client, "get_column_lineage", dataset="order_totals", column="total")
    assert sorted(column["derivations"][0]["input_columns"]) == [
        "orders_clean.price",
        "orders_clean.qty",
    ]
    paths = await use(client, "find_paths", source_id="api:shop", target_id="revenue_daily")
    assert paths["path_count"] == 1
    impact = await use(
        client, "analyze_impact", entity_id="orders_clean", description="drop column price"
    )
    assert impact["risk_level"] == "HIGH"
    gate = await use(
        client, "gate_change", entity_id="orders_clean", changes=[{"type": "table_drop"}]
    )
    assert gate["decision"] == "BLOCKED"
    drawn = await use(client, "export_lineage", entity_id="orders_clean", format="mermaid")
    assert drawn["text"].startswith("flowchart")
    figures = await use(client, "kpis")
    assert figures["kpis"]["datasets"] >= 4
    incident = await use(client, "incident_report", entity_id="revenue_daily")
    assert incident["status"] == "healthy"
    trouble = await use(client, "diagnose_metric", dataset="order_totals", column="total")
    assert sorted(trouble["direct_sources"]) == ["orders_clean.price", "orders_clean.qty"]
    dry = await use(client, "describe_pipeline", text="x feeds y\nblah blah", dry_run=True)
    assert (dry["flow_count"], dry["registered"]) == (1, False)
    assert dry["not_understood"][0]["text"] == "blah blah"
    unknown = await refusal(client, "trace_upstream", entity_id="revenue_dialy")
    assert "Did you mean" in unknown
    assert "tool" in await refusal(client, "no_such_tool")
    assert "entity_id" in await refusal(client, "trace_upstream", entity="x")


async def write_everything(client: Client) -> None:
    flow = await use(client, "register_flow", source_id="table:a1", target_id="table:a2")
    assert flow["flow"]["target_id"] == "table:a2"
    steps = [{"source_id": "table:a2", "target_id": "table:a3"}]
    pipeline = await use(client, "register_pipeline", name="letters", steps=steps)
    assert pipeline["steps_registered"] == 1
    described = await use(client, "describe_pipeline", text="a3 is copied to a4")
    assert described["registered"] is True
    sql = await use(client, "capture_sql_lineage", sql="INSERT INTO a5 SELECT x FROM a4")
    assert sql["target_tables"] == ["a5"]
    down = await use(client, "trace_downstream", entity_id="a1")
    assert "table:a5" in [entity["entity_id"] for entity in down["entities"]]


def test_a_stdio_client_reads(store: Path) -> None:
    async def talk() -> None:
        async with Client(on_pipe(store)) as client:
            listed = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(listed) == WANTED - WRITES | {"describe_pipeline"}
            for name, tool in listed.items():
                assert tool.annotations is not None
                assert tool.annotations.read_only_hint is (name not in WRITES)
                assert tool.input_schema["type"] == "object"
                assert tool.output_schema["type"] == "object"
            await ask_everything(client)
            told = await refusal(client, "register_flow", source_id="a", target_id="b")
            assert "--allow-writes" in told

    asyncio.run(talk())


def test_a_stdio_client_writes_with_permission(store: Path) -> None:
    async def talk() -> None:
        async with Client(on_pipe(store, "--allow-writes")) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == WANTED
            await write_everything(client)

    asyncio.run(talk())


def test_a_stdio_client_reads_and_writes_on_a_server(store: Path) -> None:
    async def talk(url: str) -> None:
        settings = on_pipe(store, "--store", url, "--allow-writes")
        async with Client(settings) as client:
            await ask_everything(client)
            fix = await use(
                client, "suggest_fix", entity_id="orders_clean.price", description="rename to p"
            )
            assert fix["changes"] == ["rename orders_clean.price to p"]
            await write_everything(client)

    with running_server(store) as url:
        asyncio.run(talk(url))


def test_a_stdio_server_without_a_store_stops_and_creates_none(tmp_path: Path) -> None:
    done = downriver("mcp", "--store", str(tmp_path / "none"), cwd=tmp_path)
    assert done.returncode == 2
    assert "no Downriver store" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_local_http_client_reads_and_writes(store: Path, mode: str) -> None:
    async def talk(url: str) -> None:
        async with over_http(url, mode=mode) as client:
            await ask_everything_over(client)
            await write_everything(client)

    async def ask_everything_over(client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == WANTED
        await ask_everything(client)

    with running_server(store) as url:
        asyncio.run(talk(url))


def test_http_access_depends_on_keys_and_roles(store: Path) -> None:
    with Lineage.open(str(store)) as lineage:
        reader = lineage.admin.create_key("reader", "reader")
        writer = lineage.admin.create_key("writer", "writer")
        limited = lineage.admin.create_key("limited", "writer", namespaces=["another"])

    async def talk(url: str) -> None:
        async with over_http(url, reader) as client:
            listed = {tool.name for tool in (await client.list_tools()).tools}
            assert listed == WANTED - WRITES | {"describe_pipeline"}
            await use(client, "trace_upstream", entity_id="revenue_daily")
            assert "not allowed" in await refusal(
                client, "register_flow", source_id="table:a", target_id="table:b"
            )
            assert "not allowed" in await refusal(client, "describe_pipeline", text="a9 feeds b9")
        async with over_http(url, limited) as client:
            found = await use(client, "search_entities", text="orders")
            assert found["total"] == 0  # nothing of the store is in its namespace
            assert "outside the namespaces" in await refusal(
                client, "register_flow", source_id="table:a", target_id="table:b"
            )
        async with over_http(url, writer) as client:
            await write_everything(client)

    with running_server(store) as url:
        asyncio.run(talk(url))
        for headers in ({}, {"Authorization": "Bearer nonsense"}):
            answer = httpx2.post(f"{url}/mcp", json={}, headers=headers)
            assert answer.status_code == 401
            assert answer.json()["error"] == "Unauthorized"


def test_a_request_from_another_site_is_refused(store: Path) -> None:
    with running_server(store) as url:
        answer = httpx2.post(f"{url}/mcp", json={}, headers={"Origin": "https://evil.example"})
        assert answer.status_code == 401
