"""Assets over HTTP: registered with their code read, and shown as a tree."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.unit.http.test_app import TestClient

from downriver.http import build_app
from downriver.openlineage.facets.custom import parse_code
from downriver.service import Lineage

if TYPE_CHECKING:
    from collections.abc import Iterator

ORDERS = Path(__file__).parents[3] / "examples" / "orders"
PIPELINE = (
    ("table", "raw_orders", "postgres://warehouse/raw/orders", []),
    ("dbt_model", "stg_orders", "models/staging/stg_orders.sql", ["raw_orders"]),
    ("dbt_model", "fct_orders", "models/marts/fct_orders.sql", ["stg_orders"]),
    ("dag", "daily_revenue_report", "dags/daily_revenue_report.py", ["fct_orders"]),
    ("spark_job", "customer_ltv_model", "jobs/customer_ltv.py", ["fct_orders"]),
)


@pytest.fixture
def lineage(tmp_path: Path) -> Iterator[Lineage]:
    with Lineage.open(str(tmp_path / "store"), repository=ORDERS) as opened:
        yield opened


@pytest.fixture
def client(lineage: Lineage) -> Iterator[TestClient]:
    with TestClient(build_app(lineage)) as opened:
        yield opened


def register(client: TestClient, kind: str, name: str, ref: str = "", upstream: Any = ()) -> Any:
    body = {
        "asset_type": kind, "name": name, "source_ref": ref, "upstream_assets": list(upstream),
    }  # fmt: skip
    return client.post("/v1/lineage/trace", json=body)


def register_pipeline(client: TestClient) -> dict[str, Any]:
    answers = [register(client, *asset) for asset in PIPELINE]
    assert [answer.status_code for answer in answers] == [201] * len(PIPELINE)
    return {answer.json()["name"]: answer.json() for answer in answers}


def lines(node: dict[str, Any], side: str = "downstream", indent: int = 0) -> list[str]:
    inner = [line for child in node.get(side, []) for line in lines(child, side, indent + 1)]
    return [f"{' ' * indent}[{node['asset_type'].upper()}] {node['name']}", *inner]


def test_the_tree_is_the_one_the_tutorial_prints(client: TestClient) -> None:
    assets = register_pipeline(client)
    assert assets["raw_orders"]["id"].startswith("asset_")
    answer = client.get(f"/v1/lineage/{assets['raw_orders']['id']}", params={"depth": 10}).json()
    assert lines(answer["graph"]) == [
        "[TABLE] raw_orders",
        " [DBT_MODEL] stg_orders",
        "  [DBT_MODEL] fct_orders",
        "   [DAG] daily_revenue_report",
        "   [SPARK_JOB] customer_ltv_model",
    ]
    assert answer["complete"]


def test_the_other_direction_and_both(client: TestClient) -> None:
    assets = register_pipeline(client)
    up = client.get("/v1/lineage/customer_ltv_model", params={"direction": "upstream"}).json()
    assert lines(up["graph"], "upstream") == [
        "[SPARK_JOB] customer_ltv_model",
        " [DBT_MODEL] fct_orders",
        "  [DBT_MODEL] stg_orders",
        "   [TABLE] raw_orders",
    ]
    middle = assets["stg_orders"]["id"]
    both = client.get(f"/v1/lineage/{middle}", params={"direction": "both", "depth": 1}).json()
    assert [n["name"] for n in both["graph"]["upstream"]] == ["raw_orders"]
    assert [n["name"] for n in both["graph"]["downstream"]] == ["fct_orders"]
    assert not both["complete"]  # there is more beyond depth 1


def test_the_columns_that_an_asset_uses_are_read_from_its_code(
    client: TestClient, lineage: Lineage
) -> None:
    assets = register_pipeline(client)
    assert "legacy_discount_code" in assets["stg_orders"]["columns"]
    assert "legacy_discount_code" not in assets["fct_orders"]["columns"]
    with lineage.session.reading() as view:

        def uses(job: str) -> dict[str, bool]:
            code = parse_code(
                view.reader.facets.of(lineage.session.resolve(f"job:{job}", view).node)
            )
            assert code is not None
            used: dict[str, bool] = {}
            for reference in code.references or ():
                sure = not reference.conditional
                used[reference.field] = used.get(reference.field, False) or sure
            return used

        assert uses("daily_revenue_report")["order_total"] is True  # by name, unconditionally
        assert uses("customer_ltv_model")["order_total"] is False  # only if it is there
        assert "*" in uses("customer_ltv_model")
    traced = lineage.trace("raw_orders.order_total")
    assert [node.field for node in traced.nodes] == ["order_total"] * 3 + ["spend"]


def test_every_question_accepts_the_id_of_an_asset(client: TestClient, lineage: Lineage) -> None:
    asset = register_pipeline(client)["stg_orders"]
    assert lineage.trace(asset["id"]).root.name == "stg_orders"
    assert client.get("/v1/trace", params={"entity": asset["id"]}).status_code == 200
    assert client.get("/v1/trace", params={"entity": "asset_00000000"}).status_code == 404


def test_registering_again_keeps_the_id(client: TestClient) -> None:
    first, second = register_pipeline(client), register_pipeline(client)
    assert {n: a["id"] for n, a in first.items()} == {n: a["id"] for n, a in second.items()}


def test_code_may_come_with_the_request(client: TestClient, lineage: Lineage) -> None:
    register(client, "table", "sales")
    body = {
        "asset_type": "dbt_model", "name": "daily", "source_ref": "daily",
        "source": "select day, sum(amount) as total from sales group by day",
    }  # fmt: skip
    answer = client.post("/v1/lineage/trace", json=body).json()
    assert [asset["name"] for asset in answer["upstream"]] == ["sales"]  # discovered, not declared
    assert [n.field for n in lineage.trace("sales.amount").nodes] == ["amount", "total"]


def test_an_asset_without_code_is_registered_with_a_blind_spot(client: TestClient) -> None:
    register(client, "table", "t")
    answer = register(client, "dag", "d", "../../../etc/passwd.py", ["t"]).json()
    assert (answer["read"], answer["complete"]) == (False, False)
    assert [spot["kind"] for spot in answer["blind_spots"]] == ["code_not_read"]
    assert not client.get("/v1/lineage/t").json()["complete"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"asset_type": "tabel", "name": "x"}, "asset_type"),
        ({"asset_type": "table", "name": "  "}, "name"),
        ({"asset_type": "table"}, "name"),
        ({"name": "x"}, "asset_type"),
        ({"asset_type": "dag", "name": "x", "upstream_assets": ["nope"]}, "upstream_assets"),
        ({"asset_type": "dag", "name": "x", "upstream_assets": "nope"}, "upstream_assets"),
        ({"asset_type": "dag", "name": "x", "source": "def broken(:"}, "source_ref"),
        ([], "body"),
    ],
)
def test_an_invalid_asset_is_422_with_a_detail(client: TestClient, body: Any, field: str) -> None:
    answer = client.post("/v1/lineage/trace", json=body)
    assert (answer.status_code, answer.json()["error"]) == (422, "InvalidAsset")
    assert answer.json()["field"] == field
    assert answer.json()["detail"].startswith(f"{field}: ")


def test_an_unknown_asset_is_404_and_an_invalid_request_400(client: TestClient) -> None:
    assert client.get("/v1/lineage/asset_00000000").status_code == 404
    register(client, "table", "t")
    assert client.get("/v1/lineage/t", params={"direction": "sideways"}).status_code == 400
    assert client.get("/v1/lineage/t", params={"depth": "-1"}).status_code == 400


def test_an_unregistered_asset_is_found_by_the_id_in_the_tree(
    client: TestClient, lineage: Lineage
) -> None:
    lineage.capture.sql("insert into mart.daily select day from raw.visits", job="load")
    tree = client.get("/v1/lineage/raw.visits").json()["graph"]
    assert lines(tree) == ["[TABLE] visits", " [SCRIPT] load"]
    again = client.get(f"/v1/lineage/{tree['id']}").json()["graph"]
    assert again == tree


def test_a_cycle_ends(client: TestClient, lineage: Lineage) -> None:
    lineage.capture.sql("insert into b select x from a", job="forth")
    lineage.capture.sql("insert into a select x from b", job="back")
    tree = client.get("/v1/lineage/a").json()["graph"]
    assert lines(tree) == [
        "[TABLE] a", " [SCRIPT] forth", "  [TABLE] b", "   [SCRIPT] back", "    [TABLE] a",
    ]  # fmt: skip
    assert tree["downstream"][0]["downstream"][0]["downstream"][0]["downstream"][0]["repeated"]


def test_only_a_writer_may_register(lineage: Lineage) -> None:
    reader = lineage.admin.create_key("look", "reader")
    client = TestClient(build_app(lineage))
    client.headers["Authorization"] = f"Bearer {reader}"
    assert register(client, "table", "t").status_code == 403


def test_a_table_is_not_taken_for_a_file_of_the_same_name(
    client: TestClient, lineage: Lineage
) -> None:
    lineage.capture.sql("insert into x select a from raw.orders", job="j", namespace="s3://lake")
    register(client, "table", "raw_orders", "postgres://warehouse/raw/orders")
    tree = client.get("/v1/lineage/raw_orders").json()["graph"]
    assert lines(tree) == ["[TABLE] raw_orders"]


def test_a_table_is_resolved_in_the_catalog(client: TestClient, lineage: Lineage) -> None:
    lineage.capture.dbt(ORDERS / "target", namespace="postgres://db:5432")
    register(client, "table", "raw_orders", "postgres://warehouse/raw/orders")
    tree = client.get("/v1/lineage/raw_orders").json()["graph"]
    assert lines(tree)[:3] == [
        "[TABLE] raw_orders", " [DBT_MODEL] stg_orders", "  [DBT_MODEL] fct_orders",
    ]  # fmt: skip
