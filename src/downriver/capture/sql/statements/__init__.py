"""Statements: what each kind of statement reads and writes."""
