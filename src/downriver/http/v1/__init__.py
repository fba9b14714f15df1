"""Handlers of Downriver's own API, `/v1/*`."""
