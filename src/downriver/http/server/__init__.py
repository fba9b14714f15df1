"""Middleware for every request: connection limits, log, headers, revalidation."""
