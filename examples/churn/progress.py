"""Prints the progress: a line for each stage, and its results indented below."""

from __future__ import annotations


def stage(name: str) -> None:
    """Print the name of a stage that starts."""
    print(name, flush=True)


def report(*names: str, **figures: float) -> None:
    """Print the results of a stage."""
    parts = [*names, *(f"{name} {value:,}" for name, value in figures.items())]
    print(f"  {' · '.join(parts)}", flush=True)
