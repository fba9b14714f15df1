"""Skewed input: one job with many runs, one dataset with many readers."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import pytest
from tests.openlineage import dataset, parsed, run_event
from tests.unit.lake.dumps import dump
from tests.unit.openlineage.test_order_free import catalog

from downriver.lake.reach.closure import count_in_process
from downriver.lake.reach.counts import count_node_reach
from downriver.model.facts import EdgeKind
from downriver.store import open_store

RUNS, READERS = 2000, 500


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_skewed_events_equal_the_catalog_of_the_server(spark, tmp_path):
    from downriver.lake.silver.facts import fold_events, merge_facts

    orders = dataset("orders")
    runs = [run_event("load", f"run-{n}", outputs=[orders]) for n in range(RUNS)]
    reads = [run_event(f"reader-{n}", "1", inputs=[orders]) for n in range(READERS)]
    told = [parsed(event) for event in [*runs, *reads]]
    rows = spark.createDataFrame([(bytearray(event.raw),) for event in told], "body BINARY")
    lake = dump(merge_facts(fold_events(rows.repartition(3)).cache(), {}))
    with closing(open_store(str(tmp_path))) as store:
        assert lake == catalog(store, [told])
    assert (len(lake["runs"]), len(lake["edges"])) == (RUNS + READERS, READERS + 1)


def test_a_dataset_reaches_all_of_its_many_consumers():
    """Return events in which many jobs read one dataset, and one job reads all their outputs."""
    many = 10_000
    datasets = np.arange(many + 2)
    jobs = many + 2 + np.arange(many + 1)
    consumers, readers = datasets[1:-1], jobs[:-1]
    reads = [np.full(many, 0), consumers], [readers, np.full(many, jobs[-1])]
    writes = [readers, jobs[-1:]], [consumers, datasets[-1:]]
    source = np.concatenate([*reads[0], *writes[0]])
    target = np.concatenate([*reads[1], *writes[1]])
    kinds = np.repeat([int(EdgeKind.READS), int(EdgeKind.WRITES)], [2 * many, many + 1])
    numbers = {
        "node": np.concatenate([datasets, jobs]),
        "kind": np.repeat([0, 1], [len(datasets), len(jobs)]),
    }
    links = {"kind": kinds, "source": source, "target": target, "last_at": np.zeros_like(source)}
    found = count_node_reach(numbers, links, count_in_process)
    assert found["downstream_datasets"][0] == many + 1
    assert found["downstream_jobs"][0] == many + 1
    assert found["upstream_datasets"][-1] == many + 1
    assert set(found["downstream_datasets"][1:-1].tolist()) == {1}
