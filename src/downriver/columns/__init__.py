"""The column algebra: dependencies, relations and operators.

Every source of column lineage uses it.
"""
