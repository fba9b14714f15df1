"""Every setting, its default and its meaning. Read from the environment, once, at the border."""

from __future__ import annotations

import os
from typing import NamedTuple

from downriver.errors import InvalidRequestError


class Setting(NamedTuple):
    """One environment variable."""

    name: str
    default: str
    meaning: str


STORE = Setting(
    "DOWNRIVER_STORE",
    "",
    "Where lineage is kept: a directory, or a postgresql:// URL. "
    "Unset, it is the nearest .downriver/ at or above the working directory.",
)
MAX_EVENT_MB = Setting(
    "DOWNRIVER_MAX_EVENT_MB",
    "32",
    "The largest request body the server reads, in MB, after decompression.",
)
QUEUE_MB = Setting(
    "DOWNRIVER_QUEUE_MB",
    "256",
    "How many MB of events may wait to be written before the server answers 503.",
)
STALE_DAYS = Setting(
    "DOWNRIVER_STALE_DAYS",
    "30",
    "An edge is stale when its job was seen this many days after the edge was last seen.",
)
URL = Setting(
    "DOWNRIVER_URL",
    "",
    "The server that jobs send what is captured of them to, and that lineage() asks. "
    "Unset, it is the store.",
)
API_KEY = Setting(
    "DOWNRIVER_API_KEY",
    "",
    "The key that jobs and lineage() show the server at DOWNRIVER_URL.",
)
SPOOL = Setting(
    "DOWNRIVER_SPOOL",
    "",
    "The folder where events wait that could not be sent. Unset, it is spool/ beside the store.",
)
JOB = Setting(
    "DOWNRIVER_JOB",
    "",
    "The name of the job that a tracked program is. Unset, it is the Spark application's name.",
)
NAMESPACE = Setting(
    "DOWNRIVER_NAMESPACE",
    "",
    "The namespace of that job. Unset, it is that of its parent run, else `spark`.",
)
LAKE = Setting(
    "DOWNRIVER_LAKE",
    ".downriver/lake",
    "Where the lake is: a directory, or a URL that Spark and Arrow can open, such as s3://….",
)
SETTINGS = (
    STORE,
    MAX_EVENT_MB,
    QUEUE_MB,
    STALE_DAYS,
    URL,
    API_KEY,
    SPOOL,
    JOB,
    NAMESPACE,
    LAKE,
)


def read_text(setting: Setting) -> str:
    """Return the value of a setting."""
    return os.environ.get(setting.name, "") or setting.default


def read_number(setting: Setting) -> int:
    """Return the value of a setting that is a whole number above zero."""
    text = read_text(setting)
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) == 0:
        raise InvalidRequestError(setting.name, f"{text!r} is not a whole number above zero")
    return int(text)
