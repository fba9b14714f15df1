"""The words people put before a name to say what it is: `table:orders`, `api:stripe`."""

from __future__ import annotations

from downriver.model.assets import DATASET_TYPES, JOB_TYPES

DATASET_WORDS = DATASET_TYPES
JOB_WORDS = JOB_TYPES
COLUMN_WORDS = ("column", "datasetfield")
ANY_DATASET = "dataset"
# What people register as one of these is apart from a table of the same name: `api:orders` is not
# `table:orders`. The word is its namespace.
APART = frozenset({"api", "dashboard", "feature", "model", "report", "stream", "topic"})


def split_word(text: str) -> tuple[str, str]:
    """Return the word that says what kind of thing is meant, and its name; `dataset` for none."""
    word, colon, name = text.partition(":")
    known = word.lower() in (*DATASET_WORDS, *JOB_WORDS, *COLUMN_WORDS)
    if colon and known and not name.startswith("//"):
        return word.lower(), name.strip()
    return ANY_DATASET, text.strip()
