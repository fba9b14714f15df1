"""Track two jobs on files: one declares its inputs and outputs, those of the other are detected."""

from pathlib import Path

import polars as pl

from downriver import Dataset, lineage_sync, track_lineage

LAKE = Path("lake").absolute()


@track_lineage(
    inputs=[Dataset("file", f"{LAKE}/raw/orders.csv")],
    outputs=[Dataset("file", f"{LAKE}/silver/orders.parquet")],
    job_namespace="production",
)
def clean_orders():
    raw = pl.read_csv(LAKE / "raw" / "orders.csv")
    cleaned = raw.drop_nulls("order_id").unique("order_id")
    cleaned.write_parquet(LAKE / "silver" / "orders.parquet")
    return cleaned


@track_lineage(auto=True, job_namespace="production")
def build_revenue():
    orders = pl.scan_parquet(LAKE / "silver" / "orders.parquet")
    revenue = orders.group_by("date").agg(pl.col("amount").sum()).sort("date").collect()
    revenue.write_parquet(LAKE / "gold" / "daily_revenue.parquet")
    return revenue


def main():
    for layer in ("raw", "silver", "gold"):
        (LAKE / layer).mkdir(parents=True, exist_ok=True)
    (LAKE / "raw" / "orders.csv").write_text(
        "order_id,date,amount\n1,2026-01-01,10\n1,2026-01-01,10\n2,2026-01-02,5\n,2026-01-02,7\n"
    )
    clean_orders()
    build_revenue()
    tracker = lineage_sync()
    for entity in tracker.trace_upstream("daily_revenue.parquet")["upstream_sources"]:
        print(entity["depth"], Path(entity["name"]).relative_to(LAKE), entity["via"])
    table = tracker.get_entity("silver/orders.parquet")
    print([f"{column['name']} {column['type']}" for column in table["columns"]])


main()
