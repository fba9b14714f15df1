"""What the pipeline says while it works: a line for each stage, its findings indented below."""

from __future__ import annotations


def stage(name: str) -> None:
    """Say what begins."""
    print(name, flush=True)


def report(*names: str, **figures: float) -> None:
    """Say what came of it."""
    told = [*names, *(f"{name} {value:,}" for name, value in figures.items())]
    print(f"  {' · '.join(told)}", flush=True)
