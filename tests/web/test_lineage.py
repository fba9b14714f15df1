"""The Lineage page: expand, columns, evidence, time, table, keyboard, and large graphs."""

from __future__ import annotations

import csv
import html
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from playwright.sync_api import expect
from tests.server import running_server
from tests.web.conftest import downriver
from tests.web.made_up_graph import made_up_graph
from tests.web.test_every_page import axe_violations

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Locator, Page, Request

    OpenPage = Callable[..., Page]

pytestmark = pytest.mark.slow

FCT_ORDERS = "dataset:snowflake://acme-eu1:analytics.marts.fct_orders"
REVENUE = "dataset:snowflake://acme-eu1:analytics.marts.revenue_daily"
# The answer to a click is a request: the long poll for news is none of them.
NEWS = re.compile(r"/v1/news")


def lineage_url(server: str, entity: str = FCT_ORDERS, more: str = "") -> str:
    return f"{server}/lineage?entity={quote(entity, safe='')}{more}"


def card(page: Page, entity: str) -> Locator:
    return page.locator(f'[data-node="{entity}"]')


def requests_of(page: Page) -> list[str]:
    """Return a list that fills with the requests to the API."""
    seen: list[str] = []

    def note(request: Request) -> None:
        if "/v1/" in request.url and not NEWS.search(request.url):
            seen.append(request.url)

    page.on("request", note)
    return seen


def place_of(page: Page, entity: str) -> tuple[float, float]:
    box = card(page, entity).bounding_box()
    assert box is not None
    return box["x"], box["y"]


def answer_with(page: Page, graph: dict[str, object]) -> None:
    """Answer every question for a graph with this one."""
    body = json.dumps(graph)
    page.route(
        "**/v1/graph?*", lambda route: route.fulfill(body=body, content_type="application/json")
    )


def open_columns(page: Page, entity: str) -> Locator:
    card(page, entity).get_by_role("button", name=re.compile(r"^\d+ columns?$")).click()
    rows = card(page, entity).get_by_role("button", name=re.compile("^Column "))
    rows.first.wait_for()
    return rows


def test_an_expand_is_one_request_and_moves_nothing(web_server: str, open_page: OpenPage) -> None:
    page = open_page(lineage_url(web_server, REVENUE))
    before = page.get_by_text(re.compile(r"^\d+ of \d+ shown$")).inner_text()
    page.wait_for_timeout(500)
    places = {node: place_of(page, node) for node in (FCT_ORDERS, REVENUE)}
    seen = requests_of(page)
    card(page, FCT_ORDERS).get_by_role("button", name="+1 of 2 downstream").click()
    expect(page.get_by_text(re.compile(r"^\d+ of \d+ shown$"))).not_to_have_text(before)
    page.wait_for_timeout(500)
    assert [url.split("?")[0] for url in seen] == [f"{web_server}/v1/graph"]
    assert {node: place_of(page, node) for node in places} == places
    expect(card(page, FCT_ORDERS).get_by_role("button", name="downstream")).to_have_count(0)
    page.reload()
    expect(page.locator("[data-node]")).to_have_count(7)


def test_a_locked_column_keeps_its_path_and_fades_the_rest(
    web_server: str, open_page: OpenPage
) -> None:
    page = open_page(lineage_url(web_server))
    rows = open_columns(page, FCT_ORDERS)
    rows.filter(has_text="amount_eur").click()
    expect(page.get_by_text(re.compile("column edges up and down"))).to_be_visible()
    expect(page.locator("path[data-type=DIRECT]").first).to_be_attached()
    expect(page.locator("path[data-type=INDIRECT]").first).to_be_attached()
    expect(page.get_by_role("button", name="JOIN").first).to_be_visible()
    # A dataset on the path shows its columns of the path, although it is closed.
    expect(card(page, REVENUE).get_by_role("button", name="Column revenue_eur")).to_be_visible()
    shared = page.url
    page.keyboard.press("Escape")
    expect(page.locator("path[data-type]")).to_have_count(0)
    again = open_page(shared)
    expect(again.locator("path[data-type=DIRECT]").first).to_be_attached()


def test_one_click_shows_the_whole_path_of_a_column(web_server: str, open_page: OpenPage) -> None:
    more = "&locked=churn_predictions&column=churn_probability"
    page = open_page(lineage_url(web_server, "churn_predictions", more))
    raw = page.locator('[data-node="dataset:file:/data/lake/raw/usage_logs"]')
    expect(page.get_by_role("button", name="Show 8 more datasets")).to_be_visible()
    expect(raw).to_have_count(0)
    page.get_by_role("button", name="Show 8 more datasets").click()
    expect(page).to_have_url(re.compile("q=.*usage_logs"))
    page.get_by_text(re.compile("column edges up and down$")).wait_for()
    expect(page.get_by_role("button", name="more datasets")).to_have_count(0)


def test_a_link_with_short_names_locks_the_column(web_server: str, open_page: OpenPage) -> None:
    more = "&locked=revenue_daily&column=revenue_eur"
    page = open_page(lineage_url(web_server, "revenue_daily", more))
    expect(page.locator("path[data-type=DIRECT]").first).to_be_attached()
    expect(card(page, REVENUE).get_by_role("button", name="Column revenue_eur")).to_be_visible()


def test_the_whole_graph_stays_in_view_when_the_panel_opens(
    web_server: str, open_page: OpenPage
) -> None:
    page = open_page(lineage_url(web_server))
    page.get_by_role("button", name="Table").click()
    panel = page.get_by_role("complementary", name="Table and details")
    panel.wait_for()
    page.wait_for_timeout(300)
    limit = panel.bounding_box()
    assert limit is not None
    for node in page.locator("[data-node]").all():
        box = node.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= limit["x"]


def test_hovering_a_column_previews_its_path(web_server: str, open_page: OpenPage) -> None:
    page = open_page(lineage_url(web_server))
    rows = open_columns(page, FCT_ORDERS)
    rows.filter(has_text="amount_eur").hover()
    expect(page.locator("path[data-type=DIRECT]").first).to_be_attached()
    page.mouse.move(400, 300)
    expect(page.locator("path[data-type]")).to_have_count(0)


def test_an_edge_shows_its_evidence_down_to_the_event(web_server: str, open_page: OpenPage) -> None:
    page = open_page(lineage_url(web_server, more="&panel=details"))
    card(page, FCT_ORDERS).click()
    details = page.get_by_role("region", name="Details of fct_orders")
    details.get_by_title("Show the evidence of this edge").first.click()
    evidence = page.get_by_role("region", name="Evidence of the edge")
    expect(evidence.get_by_text("First seen")).to_be_visible()
    expect(evidence.get_by_text("exact")).to_be_visible()
    evidence.get_by_role("button", name=re.compile("event", re.IGNORECASE)).first.click()
    expect(evidence.get_by_text('"eventType"')).to_be_visible()
    assert axe_violations(page) == []


def test_a_column_edge_shows_its_clause_and_expression(
    web_server: str, open_page: OpenPage
) -> None:
    more = f"&locked={quote(FCT_ORDERS, safe='')}&column=amount_eur"
    page = open_page(lineage_url(web_server, more=more))
    page.get_by_role("button", name="JOIN").first.click()
    evidence = page.get_by_role("region", name="Evidence of the column edge")
    expect(evidence.get_by_text("INDIRECT JOIN")).to_be_visible()
    assert axe_violations(page) == []


def test_blind_spots_are_on_the_canvas_with_their_text(
    web_server: str, open_page: OpenPage
) -> None:
    graph = made_up_graph(4)
    text = "the SQL of line 3 could not be parsed"
    graph["complete"] = False
    graph["nodes"][0]["blind_spot_count"] = 1
    entity = graph["nodes"][0]["id"]
    graph["blind_spots"] = [{"kind": "unparsed_sql", "entity": entity, "message": text}]
    page = open_page(f"{web_server}/lineage")
    answer_with(page, graph)
    page.goto(f"{web_server}/lineage?q=*")
    mark = card(page, entity).get_by_role("button", name=re.compile("1 blind spot"))
    expect(mark).to_have_attribute("title", re.compile(text))
    mark.click()
    details = page.get_by_role("region", name="Details of node_0")
    expect(details.get_by_text(text)).to_be_visible()


def test_the_table_is_in_step_with_the_graph(web_server: str, open_page: OpenPage) -> None:
    page = open_page(lineage_url(web_server, more="&panel=table"))
    table = page.get_by_role("table", name="Nodes of the graph")
    rows = table.locator("[role=row][aria-selected]")
    card(page, FCT_ORDERS).wait_for()
    expect(rows).to_have_count(page.locator("[data-node]").count())
    table.get_by_role("button", name="revenue_daily", exact=True).click()
    expect(card(page, REVENUE)).to_have_attribute("aria-current", "true")
    card(page, FCT_ORDERS).click(position={"x": 30, "y": 10})
    selected = table.locator("[aria-selected=true]")
    expect(selected).to_contain_text("fct_orders")
    table.get_by_role("button", name="Name").click()
    names = [row.inner_text().split("\n")[0] for row in rows.all()]
    assert names == sorted(names, key=str.lower)
    page.get_by_role("searchbox", name="Filter the table").fill("revenue_daily dataset")
    expect(rows).to_have_count(1)
    with page.expect_download() as download:
        page.get_by_role("button", name="CSV").click()
    lines = list(csv.DictReader(Path(download.value.path()).read_text("utf-8").splitlines()))
    assert [line["id"] for line in lines] == [REVENUE]
    assert axe_violations(page) == []


def test_keyboard_only(web_server: str, open_page: OpenPage) -> None:
    page = open_page(lineage_url(web_server))
    card(page, FCT_ORDERS).wait_for()
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement?.hasAttribute('data-node')"):
            break
    focused = page.locator("[data-node]:focus")
    expect(focused).to_have_attribute("data-node", FCT_ORDERS)
    page.keyboard.press("ArrowRight")  # the first arrow selects the node itself
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-node]:focus")).to_have_attribute("data-node", re.compile("^job:"))
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-node]:focus")).to_have_attribute(
        "data-node", re.compile("^dataset:")
    )
    there = page.locator("[data-node]:focus").get_attribute("data-node")
    outline = page.locator("[data-node]:focus").evaluate("(node) => getComputedStyle(node).outline")
    assert "none" not in outline
    count = page.locator("[data-node]").count()
    seen = requests_of(page)
    page.keyboard.press("+")
    expect(page.locator("[data-node]")).not_to_have_count(count)
    assert len(seen) == 1
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/entity"))
    assert there is not None


def test_the_slider_shows_a_moment_and_compares_two(web_server: str, open_page: OpenPage) -> None:
    page = open_page(lineage_url(web_server, "marts.revenue"))
    page.locator("[data-node]").first.wait_for()
    now = page.get_by_role("slider", name="Moment that is shown")
    expect(now).to_have_attribute("aria-valuetext", "now")
    now.press("ArrowLeft")
    expect(page).to_have_url(re.compile("as_of="))
    page.get_by_role("button", name="Now").click()
    expect(page).not_to_have_url(re.compile("as_of="))
    page.get_by_role("button", name="Compare").click()
    earlier = page.get_by_role("slider", name="Earlier moment to compare with")
    expect(page).to_have_url(re.compile("diff="))
    earlier.press("Home")
    added = page.locator("[data-node]").get_by_role("img", name="added", exact=True)
    expect(added.first).to_be_visible()
    page.get_by_text(re.compile(r"^\d+ column edges? changed$")).click()
    expect(page.get_by_text(re.compile("→ marts.revenue.revenue")).first).to_be_visible()
    assert axe_violations(page) == []
    shared = page.url
    again = open_page(shared)
    expect(again.get_by_role("img", name="added", exact=True).first).to_be_visible()
    page.get_by_role("button", name="Stop comparing").click()
    expect(added).to_have_count(0)


def test_a_moment_in_the_past_goes_with_search_and_pages(
    web_server: str, open_page: OpenPage
) -> None:
    moment = "as_of=2026-03-02T02:30:00Z"
    page = open_page(lineage_url(web_server, "marts.revenue", f"&{moment}&panel=details"))
    card(page, "dataset:postgres://warehouse:5432:marts.revenue").click()
    page.get_by_role("link", name="Open page").click()
    page.get_by_text("As of 2 Mar 2026").wait_for()
    with page.expect_response(re.compile(r"/v1/search\?.*as_of=2026-03-02")):
        page.keyboard.press("/")
        page.keyboard.type("executive_kpis")  # a later dataset
    page.get_by_text("Nothing contains").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Show now").click()
    expect(page.get_by_text("As of 2 Mar 2026")).to_have_count(0)
    expect(page).not_to_have_url(re.compile("as_of"))


@pytest.mark.parametrize(
    ("choice", "name", "start"),
    [
        ("Picture (SVG)", "lineage.svg", b"<svg"),
        ("Picture (PNG)", "lineage.png", b"\x89PNG"),
        ("Diagram (Mermaid)", "lineage.mmd", b"flowchart"),
    ],
)
def test_the_view_is_exported(
    web_server: str, open_page: OpenPage, choice: str, name: str, start: bytes
) -> None:
    page = open_page(lineage_url(web_server))
    card(page, FCT_ORDERS).wait_for()
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name=choice).click()
    assert download.value.suggested_filename == name
    content = Path(download.value.path()).read_bytes()
    assert content.startswith(start)
    # What is not shown is not exported.
    assert b"executive_kpis" not in content


def test_an_exported_picture_has_the_groups_and_the_faded_rest_of_the_view(
    web_server: str, open_page: OpenPage
) -> None:
    more = f"&group=namespace&locked={quote(FCT_ORDERS, safe='')}&column=amount_eur&hide=readers"
    page = open_page(lineage_url(web_server, more=more))
    page.get_by_text(re.compile("column edges up and down")).wait_for()
    groups = page.locator('[data-node^="group:"]')
    expect(groups.first).to_be_visible()
    page.get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Picture (SVG)").click()
    picture = Path(download.value.path()).read_text(encoding="utf-8")
    for group in groups.all():
        assert f"<title>{html.escape(group.get_attribute('data-node') or '')}" in picture
    assert picture.count('class="dr-card"') == page.locator("[data-node]").count()
    assert "locked" in picture
    assert "dr-faded" in picture


def test_a_selector_stands_in_place_of_a_root(web_server: str, open_page: OpenPage) -> None:
    page = open_page(lineage_url(web_server))
    card(page, FCT_ORDERS).wait_for()
    box = page.get_by_role("textbox", name="Dataset, job or selector")
    box.fill("+revenue_daily")
    box.press("Enter")
    expect(page).to_have_url(re.compile("q="))
    expect(card(page, REVENUE)).to_be_visible()
    expect(page.get_by_text("executive_kpis")).to_have_count(0)


def test_a_search_finds_the_root(web_server: str, open_page: OpenPage) -> None:
    page = open_page(f"{web_server}/lineage")
    page.get_by_role("searchbox", name="Search a dataset or job").fill("revenue_daily")
    page.get_by_role("link", name=re.compile("^revenue_daily snowflake")).click()
    expect(card(page, REVENUE)).to_be_visible()


def test_a_selector_without_a_match_shows_examples(web_server: str, open_page: OpenPage) -> None:
    page = open_page(f"{web_server}/lineage?q=tag:nothing", expected="404")
    page.get_by_text("orders and everything upstream").wait_for()
    page.goto(f"{web_server}/lineage?entity=churn_featurs")
    page.get_by_role("link", name="/data/lake/churn_features").click()
    expect(page.locator("[data-node]").first).to_be_visible()


def test_a_tag_that_propagates_is_drawn_where_it_arrives(
    web_server: str, open_page: OpenPage
) -> None:
    page = open_page(lineage_url(web_server, "staging.orders", "&columns=staging.orders"))
    orders = page.locator('[data-node$="staging.orders"]')
    origin = orders.get_by_role("img", name="pii from raw.customers.email")
    expect(origin).to_have_count(2)  # on the dataset and on its column
    column = orders.get_by_role("button", name="Column email", exact=False)
    assert [column.nth(at).get_by_role("img").count() for at in range(2)] == [0, 1]
    page.goto(f"{web_server}/entity?id=staging.orders")
    page.get_by_role("link", name="pii from raw.customers.email").click()
    page.get_by_role("heading", level=1, name="email").wait_for()


def test_filters_and_groups(web_server: str, open_page: OpenPage) -> None:
    page = open_page(lineage_url(web_server))
    card(page, FCT_ORDERS).wait_for()
    page.get_by_role("button", name="Hide").click()
    page.get_by_label("Jobs (connect datasets directly)").check()
    expect(page.locator('[data-node^="job:"]')).to_have_count(0)
    expect(card(page, REVENUE)).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_label("Collapse").select_option("By system")
    group = page.locator('[data-node^="group:s3"]')
    expect(group).to_be_visible()
    page.get_by_text(re.compile(r"^\d+ in \d+ groups?$")).wait_for()
    group.dblclick()
    expect(group).to_have_count(0)


def test_five_thousand_nodes_are_a_map_and_a_virtual_table(
    web_server: str, open_page: OpenPage
) -> None:
    page = open_page(f"{web_server}/lineage")
    answer_with(page, made_up_graph(5000))
    page.goto(f"{web_server}/lineage?q=*&panel=table")
    page.get_by_text("5,000 of 5,000 shown").wait_for()
    table = page.get_by_role("table", name="Nodes of the graph")
    expect(table).to_have_attribute("aria-rowcount", "5001")
    assert table.locator("[role=row]").count() < 80
    expect(page.locator("[data-node]")).to_have_count(0)
    # A row that is chosen is shown as a card, among its neighbours.
    table.get_by_role("button", name="node_0", exact=True).click()
    expect(page.locator('[data-node="dataset:db0:schema0.node_0"]')).to_be_visible()
    assert page.locator("[data-node]").count() <= 300


EVIL = '<img src=x onerror="document.title=1">'


def test_names_are_text(
    built_ui: None, tmp_path: Path, browser: object, open_page: OpenPage
) -> None:
    def table(name: str) -> dict[str, object]:
        fields = [{"name": EVIL, "type": EVIL, "description": EVIL}]
        facets = {"schema": {"fields": fields}, "documentation": {"description": EVIL}}
        return {"namespace": "db", "name": name, "facets": facets}

    event = {
        "eventType": "COMPLETE",
        "eventTime": "2026-01-01T00:00:00Z",
        "producer": EVIL,
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json",
        "run": {"runId": "01890a5d-ac96-774b-bcce-b302099a8057"},
        "job": {"namespace": "jobs", "name": EVIL},
        "inputs": [table("raw")],
        "outputs": [table(f"{EVIL}.out")],
    }
    events = tmp_path / "events.jsonl"
    events.write_text(json.dumps(event))
    store = tmp_path / "store"
    downriver("ingest", str(events), "--store", str(store))
    with running_server(store) as url:
        page = open_page(lineage_url(url, "dataset:db:raw", "&panel=table"))
        expect(page.locator("[data-node]")).to_have_count(3)
        open_columns(page, "dataset:db:raw")
        expect(page.locator("[data-node]").get_by_text(EVIL).first).to_be_visible()
        assert page.locator("img[src=x]").count() == 0
        expect(page).to_have_title("Lineage · Downriver")
        page.goto("about:blank")
