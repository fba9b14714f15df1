"""Lineage on Spark: the events of a whole company, folded as the server folds them.

Events become tables in four layers: bronze (as sent), facts (merged by the rules of `model.facts`),
silver (typed, for people) and gold (the graph and what follows from it). Transforms are pure; only
the runner reads and writes.
"""
