"""Stock of a warehouse: movements, balances, prices and what to order next."""

from __future__ import annotations

import random

import duckdb

from bench.incidents.pipeline import Pipeline, Step


def load_stock(db: duckdb.DuckDBPyConnection, chance: random.Random, night: int) -> None:
    products = 400
    db.execute(f"select setseed({chance.random()})")
    db.execute(
        "create or replace table raw_products as select i as product_id, 'p' || i as title, "
        "i % 7 as supplier_id, case when i % 20 = 0 then true else false end as discontinued "
        f"from range({products}) t(i)"
    )
    db.execute(
        "create or replace table raw_movements as select i as movement_id, "
        f"cast(floor(random() * {products}) as bigint) as product_id, "
        "case when random() < 0.5 then 'in' else 'out' end as direction, "
        "1 + cast(floor(random() * 9) as int) as pieces "
        f"from range({6000 + chance.randrange(-200, 200) + 15 * night}) t(i)"
    )
    db.execute(
        "create or replace table raw_prices as select product_id, version, "
        "round(2 + random() * 30, 2) as price from "
        f"range({products}) p(product_id), range(3) v(version)"
    )
    db.execute(
        "create or replace table raw_suppliers as select i as supplier_id, 's' || i as name, "
        "3 + i as days_to_deliver from range(7) t(i)"
    )


STOCK = Pipeline(
    "stock",
    (
        Step("load_products", "raw_products"),
        Step("load_movements", "raw_movements"),
        Step("load_prices", "raw_prices"),
        Step("load_suppliers", "raw_suppliers"),
        Step(
            "products",
            "products",
            "select product_id, title, supplier_id from raw_products where not discontinued",
        ),
        Step(
            "daily_balance",
            "daily_balance",
            "select product_id, sum(case when direction = 'in' then pieces else -pieces end) "
            "as balance, sum(pieces) as turnover from raw_movements group by product_id",
        ),
        Step(
            "current_prices",
            "current_prices",
            "select p.product_id, p.price from raw_prices p join (select product_id, "
            "max(version) as version from raw_prices group by product_id) l "
            "on p.product_id = l.product_id and p.version = l.version",
        ),
        Step(
            "stock_value",
            "stock_value",
            "select p.product_id, p.supplier_id, b.balance, b.turnover, "
            "b.balance * c.price as value from products p "
            "join daily_balance b on p.product_id = b.product_id "
            "join current_prices c on p.product_id = c.product_id",
        ),
        Step(
            "reorder_points",
            "reorder_points",
            "select v.product_id, v.balance, v.turnover / 30.0 * s.days_to_deliver as needed "
            "from stock_value v join raw_suppliers s on v.supplier_id = s.supplier_id",
        ),
        Step(
            "purchase_plan",
            "purchase_plan",
            "select r.product_id, r.needed - r.balance as pieces from reorder_points r "
            "where r.needed > r.balance",
        ),
        Step(
            "supplier_report",
            "supplier_report",
            "select v.supplier_id, sum(v.value) as value, count(v.product_id) as products "
            "from stock_value v group by v.supplier_id",
        ),
    ),
    load_stock,
    ("purchase_plan", "supplier_report"),
)
