"""Procedural code: blocks, routines, dynamic SQL."""
