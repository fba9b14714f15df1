"""Statements: the reads and writes of each kind of statement."""
