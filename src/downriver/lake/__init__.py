"""The lineage pipeline on Spark, for event volumes that one server cannot fold.

Events become tables in four layers: bronze (events as sent), facts (merged by the rules of
`model.facts`), silver (typed and named) and gold (the graph and figures about it). Transforms are
pure functions; only the runner and the writers in `storage` read and write tables.
"""
