"""Patches for the consumers that a change breaks."""
