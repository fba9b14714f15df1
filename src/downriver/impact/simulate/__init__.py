"""Simulates a change of one process: its SQL under changed schemas, or else its edges."""
