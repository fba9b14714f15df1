"""Answers made from walks: traces, paths, lists of entities, diagnoses."""
