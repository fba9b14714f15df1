"""Answers about trust in the data: checks, contracts, schemas, verified verdicts."""
