"""The graph as arrays of integers: nodes, columns, edges and identities, numbered by the store's
ids.
"""
