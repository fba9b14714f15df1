"""Advertising: clicks and visits of two sites, the first campaign of a visitor, return on spend."""

from __future__ import annotations

import random

import duckdb

from bench.incidents.pipeline import Pipeline, Step


def load_ads(db: duckdb.DuckDBPyConnection, chance: random.Random, night: int) -> None:
    visitors = 900 + 4 * night
    db.execute(f"select setseed({chance.random()})")
    for site in ("shop", "blog"):
        db.execute(
            f"create or replace table raw_{site}_clicks as select i as click_id, "
            f"cast(floor(random() * {visitors}) as bigint) as visitor_id, "
            "1 + cast(floor(random() * 12) as int) as campaign_id, "
            "round(0.05 + random() * 2, 3) as cost_per_click, "
            f"timestamp '2026-03-02' + interval ({night}) day "
            f"+ interval (cast(random() * 86000 as int)) second as clicked_at "
            f"from range({2500 + chance.randrange(-90, 90)}) t(i)"
        )
    db.execute(
        "create or replace table raw_campaigns as select i as campaign_id, 'c' || i as name, "
        "case when i % 3 = 0 then 'search' when i % 3 = 1 then 'social' else 'mail' end as channel "
        "from range(1, 13) t(i)"
    )
    db.execute(
        "create or replace table raw_purchases as select i as purchase_id, "
        f"cast(floor(random() * {visitors}) as bigint) as visitor_id, "
        "round(10 + random() * 120, 2) as value, "
        "case when random() < 0.9 then 'EUR' else 'USD' end as currency "
        f"from range({1500 + chance.randrange(-60, 60)}) t(i)"
    )


ADS = Pipeline(
    "ads",
    (
        Step("load_shop_clicks", "raw_shop_clicks"),
        Step("load_blog_clicks", "raw_blog_clicks"),
        Step("load_campaigns", "raw_campaigns"),
        Step("load_purchases", "raw_purchases"),
        Step(
            "union_clicks",
            "clicks",
            "select click_id, visitor_id, campaign_id, cost_per_click, clicked_at "
            "from raw_shop_clicks union all select click_id, visitor_id, campaign_id, "
            "cost_per_click, clicked_at from raw_blog_clicks",
        ),
        Step(
            "first_touches",
            "first_touches",
            "select visitor_id, campaign_id, clicked_at from (select visitor_id, campaign_id, "
            "clicked_at, row_number() over (partition by visitor_id order by clicked_at) as place "
            "from clicks ) where place = 1",
        ),
        Step(
            "visitor_value",
            "visitor_value",
            "with euros as (select visitor_id, case when currency = 'USD' then value * 0.9 "
            "else value end as euros from raw_purchases ) "
            "select visitor_id, sum(euros) as euros, count(*) as purchases from euros "
            "group by visitor_id",
        ),
        Step(
            "campaign_costs",
            "campaign_costs",
            "select campaign_id, sum(cost_per_click) as cost, count(click_id) as clicks "
            "from clicks group by campaign_id",
        ),
        Step(
            "attribution",
            "attribution",
            "select f.campaign_id, sum(v.euros) as euros, count(f.visitor_id) as visitors "
            "from first_touches f join visitor_value v on f.visitor_id = v.visitor_id "
            "group by f.campaign_id",
        ),
        Step(
            "return_on_spend",
            "return_on_spend",
            "select c.channel, sum(a.euros) as euros, sum(k.cost) as cost, "
            "sum(a.euros) / sum(k.cost) as ratio from raw_campaigns c "
            "left join attribution a on c.campaign_id = a.campaign_id "
            "left join campaign_costs k on c.campaign_id = k.campaign_id group by c.channel",
        ),
    ),
    load_ads,
    ("return_on_spend",),
)
