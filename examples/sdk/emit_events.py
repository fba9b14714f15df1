"""Build and send OpenLineage events: a run that completes, and a run that fails."""

import uuid

from downriver import LineageEmitter, create_lineage_event, lineage_sync

SILVER = {"namespace": "s3://lake", "name": "silver/orders"}
GOLD = {"namespace": "s3://lake", "name": "gold/daily_revenue"}


def main():
    emitter = LineageEmitter()  # sends to DOWNRIVER_URL, else to the local store
    run = str(uuid.uuid4())
    for state in ("START", "COMPLETE"):
        emitter.emit(
            create_lineage_event(state, "production", "build_revenue", run, [SILVER], [GOLD])
        )
    failed = create_lineage_event("FAIL", "production", "build_revenue", str(uuid.uuid4()), [], [])
    failed["run"]["facets"] = {
        "errorMessage": {"message": "out of memory", "programmingLanguage": "python"}
    }
    emitter.emit(failed)
    emitter.flush()
    tracker = lineage_sync()
    print(tracker.get_downstream_impact("s3://lake/silver/orders"))
    for run in tracker.get_entity("job:build_revenue")["runs"]:
        print(run["state"], run["error"])


main()
