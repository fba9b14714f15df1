"""Queries: translates a query's tree into the column algebra."""
