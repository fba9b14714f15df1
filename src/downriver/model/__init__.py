"""The vocabulary of lineage: ids, facts, answers. It imports nothing else of Downriver."""
