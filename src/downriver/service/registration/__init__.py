"""Registered lineage: assets with their code, and flows."""
