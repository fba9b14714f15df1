"""How far every dataset and column reaches, counted on the driver in arrays of numbers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from downriver.lake import tables
from downriver.lake.closure import Items, count_reached, longest_ways
from downriver.lake.flow import (
    DATASETS,
    JOBS,
    STAR,
    ColumnFlow,
    ColumnLinks,
    Flow,
    Links,
    column_flow,
    join_names,
    node_flows,
    pairs,
)
from downriver.lake.folding import JOB
from downriver.lake.numbers import (
    COLUMN_LINKS,
    FIELDS,
    LINKS,
    NUMBERS,
    check_distinct,
    column_links,
    field_numbers,
    named_column_reach,
    named_reach,
    node_links,
    node_numbers,
)
from downriver.lake.snapshots import PARQUET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from downriver.lake.blocks import Count
    from downriver.lake.condense import Ints
    from downriver.lake.stored import Tables

_NODE_COUNTS = tables.Table("counts", (("node", "BIGINT"), *tables.REACH.columns[2:]))
_COLUMN_COUNTS = tables.Table("counts", (*FIELDS.columns, *tables.COLUMN_REACH.columns[3:]))


class Reach:
    """Measures how far everything reaches, by way of numbers in a folder of their own."""

    def __init__(
        self, stored: Tables, path: str, count: Count, facts: Mapping[str, DataFrame]
    ) -> None:
        self._tables = stored
        self._path = path
        self._nodes, self._columns = facts["facts.nodes"], facts["facts.columns"]
        self.count = count
        with ThreadPoolExecutor() as pool:  # four small jobs: one alone leaves Spark idle
            self.numbers, self.links, self.fields, self.steps = pool.map(
                self.arrays,
                (NUMBERS, LINKS, FIELDS, COLUMN_LINKS),
                (
                    node_numbers(self._nodes),
                    node_links(facts["facts.edges"]),
                    field_numbers(self._columns),
                    column_links(facts["facts.derivations"]),
                ),
            )
        check_distinct(self.numbers["node"])
        self.of_nodes = count_nodes(self.numbers, self.links, count)

    def measure(self) -> dict[str, DataFrame]:
        """Return the tables of reach by name."""
        of_columns = count_columns(
            self.fields, self.steps, speakers(self.numbers, self.links), self.count
        )
        return {
            "reach": named_reach(self.frame(_NODE_COUNTS, "of_nodes", self.of_nodes), self._nodes),
            "column_reach": named_column_reach(
                self.frame(_COLUMN_COUNTS, "of_columns", of_columns), self._columns
            ),
        }

    def arrays(self, table: tables.Table, frame: DataFrame) -> dict[str, Ints]:
        """Bring a table of numbers to the driver."""
        path = f"{self._path}/{table.name}"
        self._tables.write(frame, path, PARQUET)
        return self._tables.read_arrays(table, path)

    def frame(self, table: tables.Table, name: str, columns: Mapping[str, Ints]) -> DataFrame:
        """Take columns of numbers back to Spark."""
        return self._tables.write_arrays(table, columns, f"{self._path}/{name}")


def count_nodes(
    numbers: Mapping[str, Ints], links: Mapping[str, Ints], count: Count
) -> dict[str, Ints]:
    """Return how far each dataset reaches; every name of one dataset reaches as far."""
    nodes, dense = _dense(numbers["node"], links)
    is_job = np.zeros(len(nodes), np.bool_)
    is_job[np.searchsorted(nodes, numbers["node"])] = numbers["kind"] == JOB
    edges = Links(links["kind"], dense["source"], dense["target"], links["last_at"])
    down, up = node_flows(len(nodes), is_job, edges)
    speaker = join_names(len(nodes), edges)
    found = {"node": nodes}
    for way, flow in (("downstream", down), ("upstream", up)):
        reached = _count(flow, count)
        found[f"{way}_datasets"] = reached[DATASETS][speaker]
        found[f"{way}_jobs"] = reached[JOBS][speaker]
        found[f"{way}_depth"] = _depth(flow)[speaker]
    return {name: values[~is_job] for name, values in found.items()}


def count_columns(
    fields: Mapping[str, Ints], links: Mapping[str, Any], speaker: Mapping[str, Ints], count: Count
) -> dict[str, Ints]:
    """Return how far each column reaches. `speaker` says which name stands for a dataset."""
    dataset, flow = _columns_flow(fields, links, speaker)
    found: dict[str, Ints] = {}
    for way, directed in (("downstream", flow.down), ("upstream", flow.up)):
        size = len(flow.dataset)
        found[f"{way}_columns"] = _count(directed, count)[0][:size]
        found[f"{way}_depth"] = _depth(directed)[:size]
    return _for_every_name(fields, dataset, flow.dataset, flow.field, found)


def _columns_flow(
    fields: Mapping[str, Ints], links: Mapping[str, Any], speaker: Mapping[str, Ints]
) -> tuple[Ints, ColumnFlow]:
    """Return which dataset stands for that of each field, and the graph of columns."""
    source, target, dataset = (
        _spoken(values, speaker) for values in (links["source"], links["target"], fields["dataset"])
    )
    ends = (source, links["source_field"], target, links["target_field"])
    return dataset, column_flow(dataset, fields["field"], ColumnLinks(*ends, links["copies"]))


def count_marked_upstream(
    numbers: Mapping[str, Ints], links: Mapping[str, Ints], marks: Ints, count: Count
) -> dict[str, Ints]:
    """Return how many datasets with each set of marks lie upstream of each dataset, as `with_N`.

    `marks` has bits for each of `numbers`; a dataset has those of all its names. Those without any
    are not counted: where few are marked, that costs little.
    """
    nodes, dense = _dense(numbers["node"], links)
    at = np.searchsorted(nodes, numbers["node"])
    is_job = np.zeros(len(nodes), np.bool_)
    is_job[at] = numbers["kind"] == JOB
    edges = Links(links["kind"], dense["source"], dense["target"], links["last_at"])
    speaker = join_names(len(nodes), edges)
    marked = np.zeros(len(nodes), np.int64)
    np.bitwise_or.at(marked, speaker[at], marks)
    _, up = node_flows(len(nodes), is_job, edges)
    of = np.where(is_job[up.items.of] | (marked[up.items.of] == 0), -1, up.items.of)
    counted = count_reached(up.size, up.source, up.target, Items(of, marked), count)
    found = {f"with_{mark}": values[speaker][~is_job] for mark, values in enumerate(counted)}
    return {"node": nodes[~is_job], **found}


def count_marked_columns(
    fields: Mapping[str, Ints],
    links: Mapping[str, Any],
    speaker: Mapping[str, Ints],
    marked: Mapping[str, Ints],
    count: Count,
) -> dict[str, Ints]:
    """Return how many of the `marked` columns lie upstream of each column, as `marked`."""
    dataset, flow = _columns_flow(fields, links, speaker)
    keys = pairs(flow.dataset, flow.field)
    of = pairs(_spoken(marked["dataset"], speaker), marked["field"])
    item = np.full(flow.up.size, -1, np.int64)
    item[: len(keys)] = np.where(np.isin(keys, of), np.arange(len(keys)), -1)
    items = Items(item, flow.up.items.kind)
    marks = {"marked": _count(flow.up._replace(items=items), count)[0][: len(keys)]}
    return _for_every_name(fields, dataset, flow.dataset, flow.field, marks)


def speakers(numbers: Mapping[str, Ints], links: Mapping[str, Ints]) -> dict[str, Ints]:
    """Return which node stands for all names of each."""
    nodes, dense = _dense(numbers["node"], links)
    edges = Links(links["kind"], dense["source"], dense["target"], links["last_at"])
    return {"node": nodes, "speaker": nodes[join_names(len(nodes), edges)]}


def _spoken(values: Ints, speaker: Mapping[str, Ints]) -> Ints:
    return speaker["speaker"][np.searchsorted(speaker["node"], values)]


def _for_every_name(
    fields: Mapping[str, Ints], spoken: Ints, dataset: Ints, field: Ints, found: dict[str, Ints]
) -> dict[str, Ints]:
    """Give every column, under each name of its dataset, what the one that stands for it has."""
    keys, wanted = pairs(dataset, field), pairs(spoken, fields["field"])
    named = wanted["field"] != STAR
    at = np.searchsorted(keys, wanted[named])
    counts = {name: values[at] for name, values in found.items()}
    return {"dataset": fields["dataset"][named], "field": fields["field"][named], **counts}


def _dense(nodes: Ints, links: Mapping[str, Ints]) -> tuple[Ints, dict[str, Ints]]:
    known = np.unique(nodes)
    return known, {end: np.searchsorted(known, links[end]) for end in ("source", "target")}


def _count(flow: Flow, count: Count) -> list[Ints]:
    found = count_reached(flow.size, flow.source, flow.target, flow.items, count)
    nothing = [np.zeros(flow.size, np.int64)]
    return [*found, *nothing * 2][:2]


def _depth(flow: Flow) -> Ints:
    return longest_ways(flow.size, flow.source, flow.target, flow.weight)
