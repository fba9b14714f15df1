"""Counts of everything upstream and downstream of each dataset and column."""
