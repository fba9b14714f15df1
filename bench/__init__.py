"""Benchmarks side by side: the same work done our way and another, and the ratio of the two."""
