"""Integrations with other systems, and the versions of datasets that they report."""
