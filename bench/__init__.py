"""Benchmarks that compare Downriver with another way to do the same work, and report the ratio."""
