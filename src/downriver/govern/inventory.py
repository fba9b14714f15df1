"""Coverage against an inventory: the share of existing tables that have lineage.

Events only name reported tables. Another source must list the tables that no event names.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np

from downriver.model.governance import InventoryCoverage, Share
from downriver.model.ids import DatasetId

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from downriver.graph import GraphSnapshot
    from downriver.store import CatalogReader

Parts = tuple[str, ...]
_PART = re.compile(r'"([^"]*)"|`([^`]*)`|\[([^\]]*)\]|([^.]+)')


def measure_inventory(
    graph: GraphSnapshot, reader: CatalogReader, source: str, tables: Sequence[str]
) -> InventoryCoverage:
    """Return how many of the listed tables have lineage, and the tables without lineage."""
    identities, flow = graph.nodes.identities, graph.nodes.flow
    names = reader.nodes.by_ids(reader.history.nodes_of_kind(0))
    datasets = {
        str(name): (identities.canonical(node), split_name(name.name))
        for node, name in names.items()
        if isinstance(name, DatasetId)
    }
    ends = np.concatenate([flow.ends.source.values, flow.ends.target.values])
    joined = set(identities.canonicals(ends).tolist())
    listed = {table: split_name(table) for table in tables}
    matches = match_tables(listed, {key: parts for key, (_, parts) in datasets.items()})
    nodes = {table: {datasets[key][0] for key in found} for table, found in matches.items()}
    covered = {table for table, of in nodes.items() if of & joined}
    matched = {node for of in nodes.values() for node in of}
    return InventoryCoverage(
        source=source,
        coverage=Share.of(len(covered), len(listed)),
        missing=sorted(table for table, of in nodes.items() if not of),
        without_edges=sorted(table for table, of in nodes.items() if of and table not in covered),
        not_listed=sorted(
            {key for key, (node, _) in datasets.items() if node in joined and node not in matched}
        ),
    )


def match_tables(listed: dict[str, Parts], datasets: dict[str, Parts]) -> dict[str, list[str]]:
    """Return the datasets of each listed table, matched by the last parts of the names.

    `shop.public.orders` is `public.orders`, in any letter case. A name without a schema matches
    only if no other listed table has the same last part.
    """
    by_last: defaultdict[str, list[tuple[str, Parts]]] = defaultdict(list)
    for key, parts in datasets.items():
        by_last[parts[-1]].append((key, parts))
    alike = Counter(parts[-1] for parts in listed.values())
    return {
        table: [table]  # a full id
        if table in datasets
        else [
            key
            for key, other in by_last[parts[-1]]
            if _is_same(parts, other, unique=alike[parts[-1]] == 1)
        ]
        for table, parts in listed.items()
    }


def _is_same(one: Parts, other: Parts, *, unique: bool) -> bool:
    shared = min(len(one), len(other))
    return one[-shared:] == other[-shared:] and (shared > 1 or unique)


def split_name(name: str) -> Parts:
    """Return the parts of a table name without quotes, in lower case."""
    found: Iterable[tuple[str, ...]] = _PART.findall(name)
    parts = tuple("".join(groups).strip().casefold() for groups in found)
    return parts or (name.casefold(),)
