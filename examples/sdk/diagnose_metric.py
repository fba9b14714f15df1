"""Trace a metric that looks wrong back to its sources, and find out where to look first."""

import contextlib

from downriver import lineage_sync

tracker = lineage_sync()


@tracker.track(target="table:raw.payments", name="load_payments")
def load_payments(*, works):
    if not works:
        raise ConnectionError("the payment provider does not answer")


load_payments(works=True)
tracker.capture_sql_lineage(
    "INSERT INTO silver.payments (day, amount) SELECT day, cents / 100 FROM raw.payments",
    transformation="Cents to euros",
)
tracker.capture_sql_lineage(
    "INSERT INTO gold.daily_revenue (day, total)"
    " SELECT day, SUM(amount) FROM silver.payments GROUP BY day",
    transformation="Revenue by day",
)
with contextlib.suppress(ConnectionError):
    load_payments(works=False)

diagnosis = tracker.diagnose_metric("gold.daily_revenue", "total")
print("metric:", diagnosis["metric"])
print("derives from:", diagnosis["direct_sources"], diagnosis["transformations"])
print("fresh:", diagnosis["freshness_silver.payments.amount"] is not None)
for suspect in diagnosis["look_first"]:
    print(f"{suspect['kind']}: {suspect['entity']}")
