"""Document column lineage in Python, and read column lineage from SQL."""

from downriver import ColumnLineage, document_column_lineage, lineage_sync, parse_sql_lineage

document_column_lineage(
    "build_daily_revenue",
    [
        ColumnLineage(
            output_column="total_revenue",
            input_columns=["silver.orders.amount"],
            transformation="SUM(amount) GROUP BY date, region",
        ),
        ColumnLineage(
            output_column="avg_order_value",
            input_columns=["silver.orders.amount", "silver.orders.order_id"],
            transformation="SUM(amount) / COUNT(DISTINCT order_id)",
        ),
    ],
    output_path="lineage/column_lineage.jsonl",
    output="gold.daily_revenue",
)

SQL = """
INSERT INTO gold.region_revenue (region, revenue)
SELECT region, SUM(amount) FROM silver.orders GROUP BY region
"""
found = parse_sql_lineage(SQL)
print("tables:", found.inputs, "->", found.outputs)
for edge in found.column_edges:
    print(f"{edge.target} <- {edge.source} ({edge.subtype})")

tracker = lineage_sync()
for made in tracker.get_column_lineage("gold.daily_revenue", "avg_order_value"):
    print(made.output_column, "<-", made.input_columns, made.transformation)
