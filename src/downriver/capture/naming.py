"""Names that people give to datasets and jobs, made into identities without a catalog."""

from __future__ import annotations

from downriver.capture.places import dataset_from
from downriver.errors import InvalidRequestError
from downriver.model.entity_words import ANY_DATASET, APART, COLUMN_WORDS, JOB_WORDS, split_word
from downriver.model.ids import DatasetId, JobId, NodeId

_FILE = "file"


def new_node(text: str, namespace: str, field: str = "entity_id") -> NodeId:
    """Return the identity of what no catalog knows; a name that cannot be one is refused."""
    word, name = check_name(text, field)
    if word in JOB_WORDS:
        home, colon, rest = name.rpartition(":")
        return JobId(home, rest) if colon and word == "job" else JobId(namespace, name)
    named = dataset_from(name)
    if named is not None:
        return named
    home, colon, rest = name.rpartition(":")
    if word == ANY_DATASET and colon:
        return DatasetId(home, rest)
    return DatasetId(word if word in APART or word == _FILE else namespace, name)


def check_name(text: str, field: str) -> tuple[str, str]:
    """Return the word and the name of what people write, or say why it is neither."""
    word, name = split_word(text)
    if not name:
        raise InvalidRequestError(field, "empty; write it like table:orders or api:stripe")
    if word in COLUMN_WORDS:
        raise InvalidRequestError(field, f"{text!r} is a column; flows join datasets and jobs")
    return word, name
