"""Follows Python code without running it."""
