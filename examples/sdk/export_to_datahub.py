"""Export lineage to DataHub: a metadata file for its `file` source."""

import json
from pathlib import Path

from downriver import lineage_sync

tracker = lineage_sync()
tracker.register_flow("s3://lake/raw/orders", "s3://lake/silver/orders")
tracker.register_flow("s3://lake/silver/orders", "s3://lake/gold/daily_revenue")

found = tracker.export_lineage("s3://lake/gold/daily_revenue", format="datahub")
Path("lineage.json").write_text(found["diagram"])
for proposal in json.loads(found["diagram"]):
    upstreams = [upstream["dataset"] for upstream in proposal["aspect"]["json"]["upstreams"]]
    print(proposal["entityUrn"], "<-", *upstreams)
# datahub ingest with: source: {type: file, config: {path: lineage.json}}
