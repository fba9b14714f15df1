"""Governance: KPIs, incidents, tags, certification, drift and its monitor."""
