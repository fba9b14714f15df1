"""Answers to a search over datasets, jobs, columns, tags and owners; the graph as arrays."""

from __future__ import annotations

from typing import Literal

import msgspec

from downriver.model.flows import EntitySummary


class SearchHit(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Something that matches a search. `match` are places in `name`: [start, end].

    The id of a tag or owner is a selector, such as `tag:pii`.
    """

    id: str
    kind: Literal["dataset", "job", "column", "tag", "owner"]
    name: str
    label: str
    namespace: str
    tags: list[str]
    match: list[list[int]]
    type: str | None = None
    dataset: str | None = None
    count: int | None = None


class SearchFacets(msgspec.Struct, kw_only=True):
    """How many of the counted matches have each value."""

    kind: dict[str, int]
    type: dict[str, int]
    namespace: dict[str, int]
    tag: dict[str, int]
    owner: dict[str, int]


class SearchPage(msgspec.Struct, kw_only=True):
    """A page of a search.

    `entities` and `total` are datasets and jobs. `hits` also has columns, tags and owners, on the
    first page. `facets` count the first `facets_of` datasets and jobs. Unless `total_is_exact`,
    there are more than `total`. For a key that is limited to namespaces `complete` is false: there
    may be more outside of them.
    """

    entities: list[EntitySummary]
    hits: list[SearchHit]
    total: int
    cursor: str | None
    next_cursor: str | None
    complete: bool
    total_is_exact: bool
    facets: SearchFacets
    facets_of: int


class GraphMap(msgspec.Struct, kw_only=True):
    """The whole graph as arrays.

    Without grouping, the arrays have one item per node and `edges` are pairs of places. With
    grouping, they are empty and `group_edges` are (group, group, number of edges).
    """

    group: Literal["none", "namespace", "schema"]
    total: int
    shown: int
    ids: list[str]
    labels: list[str]
    types: list[str]
    groups: list[int]
    group_names: list[str]
    group_sizes: list[int]
    degrees: list[int]
    marks: list[list[str]]
    edges: list[int]
    group_edges: list[list[int]]
    as_of: str | None
