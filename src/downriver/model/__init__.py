"""The vocabulary of lineage: ids, facts, answers. It imports no other package of Downriver."""
