"""Changes that migrations make: DDL, and code that contains it."""
