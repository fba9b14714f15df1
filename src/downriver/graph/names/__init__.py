"""Resolves names from users and code to catalog ids, and shortens ids for display."""
