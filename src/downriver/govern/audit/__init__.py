"""Signed checkpoints of the log in other places, and the audit log as files."""
