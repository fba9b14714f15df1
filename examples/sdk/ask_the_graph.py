"""Ask the graph for chains, paths, the impact of a change, and a diagram."""

import asyncio

from downriver import lineage

STEPS = [
    ("api:crm", "table:raw_customers", "Pull customers"),
    ("table:raw_customers", "table:customers_clean", "Clean and deduplicate"),
    ("table:customers_clean", "table:customer_360", "Join with orders and scores"),
    ("table:order_history", "table:customer_360", "Join with orders and scores"),
    ("table:customer_360", "model:churn_v3", "Train"),
    ("model:churn_v3", "table:churn_risk_scores", "Predict"),
]


async def main():
    tracker = lineage()
    await tracker.register_pipeline(
        "Customer 360",
        [{"source_id": a, "target_id": b, "transformation": step} for a, b, step in STEPS],
        schedule="0 6 * * *",
    )
    print("upstream:", await tracker.get_upstream_chain("table:churn_risk_scores"))
    print("downstream:", await tracker.get_downstream_impact("table:customers_clean"))
    paths = await tracker.find_lineage_paths("api:crm", "model:churn_v3")
    print("path:", " -> ".join(paths["paths"][0]))
    impact = await tracker.analyze_impact("table:customers_clean", "deletion")
    print(impact["verdict"], impact["risk_level"], impact["total_affected_count"], impact["reason"])
    diagram = await tracker.export_lineage("table:customer_360", format="mermaid")
    print(diagram["diagram"])
    await tracker.close()


asyncio.run(main())
