"""The column algebra: dependencies, relations and operators.

Every source of column lineage (SQL, Spark plans, data frames in Python code) translates into it.
"""

from downriver.columns.dependencies import (
    NOTHING,
    Certainty,
    DependencyKey,
    DependencyKind,
    Deps,
    TableName,
    choose,
    direct,
    indirect,
    merge,
    merge_all,
    source,
    weaken,
    window,
)
from downriver.columns.operators import (
    aggregate,
    compare_rows,
    distinct,
    filter_rows,
    generate,
    join,
    opaque,
    project,
    sort,
    union,
    union_by_name,
)
from downriver.columns.relations import Column, Definition, Item, Relation, Star
from downriver.columns.table_ranking import find_likeliest

__all__ = [
    "NOTHING",
    "Certainty",
    "Column",
    "Definition",
    "DependencyKey",
    "DependencyKind",
    "Deps",
    "Item",
    "Relation",
    "Star",
    "TableName",
    "aggregate",
    "choose",
    "compare_rows",
    "direct",
    "distinct",
    "filter_rows",
    "find_likeliest",
    "generate",
    "indirect",
    "join",
    "merge",
    "merge_all",
    "opaque",
    "project",
    "sort",
    "source",
    "union",
    "union_by_name",
    "weaken",
    "window",
]
