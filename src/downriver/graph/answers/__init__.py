"""Answers that walks produce: traces, paths, lists of entities, diagnoses."""
