"""Faults of other kinds in other pipelines. No rule was changed after they were first measured."""

from __future__ import annotations

from bench.incidents.pipeline import Fault

_TWICE = "insert into {0} select * from {0}"
_EMPTY = "delete from {0}"


def _ads(kind: str, table: str, detail: str, harmless: str) -> Fault:
    return Fault("ads", kind, table, detail.format(table), "return_on_spend", harmless)


def _stock(kind: str, table: str, detail: str, symptom: str, harmless: str) -> Fault:
    return Fault("stock", kind, table, detail.format(table), symptom, harmless)


HELD_OUT_FAULTS = (
    _ads("renamed column", "raw_purchases", "alter table {0} rename value to amount",
         "raw_campaigns"),
    _ads("renamed column", "raw_blog_clicks", "alter table {0} rename campaign_id to campaign",
         "raw_purchases"),
    _stock("renamed column", "raw_movements", "alter table {0} rename pieces to quantity",
           "purchase_plan", "raw_prices"),
    _stock("renamed column", "raw_suppliers", "alter table {0} rename days_to_deliver to lead_time",
           "purchase_plan", "raw_products"),
    _ads("retyped column", "raw_purchases", "alter table {0} alter value type varchar using "
         "value || ' EUR'", "raw_shop_clicks"),
    _ads("retyped column", "raw_shop_clicks", "alter table {0} alter campaign_id type varchar "
         "using 'campaign ' || campaign_id", "raw_campaigns"),
    _stock("retyped column", "raw_prices", "alter table {0} alter price type varchar using "
           "replace(cast(price as varchar), '.', ',')", "supplier_report", "raw_suppliers"),
    _stock("retyped column", "raw_products", "alter table {0} alter supplier_id type varchar "
           "using 'S-' || supplier_id", "purchase_plan", "raw_movements"),
    _ads("empty source", "raw_blog_clicks", _EMPTY, "raw_campaigns"),
    _ads("empty source", "raw_purchases", _EMPTY, "raw_shop_clicks"),
    _stock("empty source", "raw_movements", _EMPTY, "supplier_report", "raw_prices"),
    _stock("empty source", "raw_suppliers", _EMPTY, "purchase_plan", "raw_products"),
    _ads("source loaded twice", "raw_shop_clicks", _TWICE, "raw_purchases"),
    _ads("source loaded twice", "raw_purchases", _TWICE, "raw_blog_clicks"),
    _stock("source loaded twice", "raw_movements", _TWICE, "purchase_plan", "raw_suppliers"),
    _stock("source loaded twice", "raw_prices", _TWICE, "supplier_report", "raw_products"),
    _stock("source loaded twice", "raw_suppliers", _TWICE, "purchase_plan", "raw_movements"),
    _ads("changed unit", "raw_purchases", "update {0} set value = value * 100", "raw_campaigns"),
    _ads("changed unit", "raw_blog_clicks", "update {0} set cost_per_click = cost_per_click * 1000",
         "raw_purchases"),
    _stock("changed unit", "raw_movements", "update {0} set pieces = pieces * 12", "purchase_plan",
           "raw_products"),
    _stock("changed unit", "raw_prices", "update {0} set price = price * 100", "supplier_report",
           "raw_movements"),
    _stock("changed unit", "raw_suppliers", "update {0} set days_to_deliver = days_to_deliver * 24",
           "purchase_plan", "raw_prices"),
    _ads("changed aggregate", "visitor_value", "sum(euros) -> max(euros)", "raw_campaigns"),
    _ads("changed aggregate", "campaign_costs", "sum(cost_per_click) -> avg(cost_per_click)",
         "raw_purchases"),
    _stock("changed aggregate", "daily_balance", "else -pieces -> else pieces", "supplier_report",
           "raw_prices"),
    _stock("changed aggregate", "current_prices", "max(version) -> min(version)", "supplier_report",
           "raw_suppliers"),
    _ads("multiplied rows", "first_touches", "place = 1 -> place <= 3", "raw_campaigns"),
    _ads("multiplied rows", "visitor_value", " group by visitor_id -> , euros group by visitor_id, "
         "euros", "raw_blog_clicks"),
    _stock("multiplied rows", "current_prices", " and p.version = l.version -> ", "supplier_report",
           "raw_products"),
    _stock("multiplied rows", "stock_value", "p.product_id = c.product_id -> "
           "p.product_id <= c.product_id", "purchase_plan", "raw_suppliers"),
)  # fmt: skip
