"""All settings: environment variables with their defaults and meanings."""

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
    "The store: a directory, or a postgresql:// URL. "
    "Default: the nearest .downriver/ at or above the working directory.",
)
MAX_EVENT_MB = Setting(
    "DOWNRIVER_MAX_EVENT_MB",
    "32",
    "The largest request body that the server accepts, in MB, after decompression.",
)
BODIES_MB = Setting(
    "DOWNRIVER_BODIES_MB",
    "256",
    "The maximum size of all decompressed request bodies that the server holds at one time, in MB. "
    "Beyond it, the server answers 503.",
)
MAX_CONNECTIONS = Setting(
    "DOWNRIVER_MAX_CONNECTIONS",
    "800",
    "The maximum number of connections. Requests on further connections get 503.",
)
HEADERS = Setting("DOWNRIVER_HEADERS", "100", "The maximum number of headers of a request.")
HEADER_KB = Setting(
    "DOWNRIVER_HEADER_KB", "64", "The maximum size of the URL and the headers of a request, in KB."
)
HEADER_SECONDS = Setting(
    "DOWNRIVER_HEADER_SECONDS",
    "10",
    "The maximum time in which a client must send the headers of a request, in seconds.",
)
IDLE_SECONDS = Setting(
    "DOWNRIVER_IDLE_SECONDS",
    "20",
    "The maximum time in which a client sends no part of a body, or reads no part of an answer, "
    "in seconds.",
)
BODY_SECONDS = Setting(
    "DOWNRIVER_BODY_SECONDS",
    "120",
    "The maximum time in which a client must send the body of a request, in seconds.",
)
QUEUE_MB = Setting(
    "DOWNRIVER_QUEUE_MB",
    "256",
    "The maximum size of the write queue, in MB. When it is full, the server answers 503.",
)
READERS = Setting(
    "DOWNRIVER_READERS",
    "4",
    "The number of questions that are answered at the same time. Events do not wait for them.",
)
READ_QUEUE = Setting(
    "DOWNRIVER_READ_QUEUE",
    "128",
    "The maximum number of waiting questions. Further ones get 503 with Retry-After.",
)
WORKERS = Setting(
    "DOWNRIVER_WORKERS",
    "2",
    "The number of worker processes that read code from clients and simulate changes.",
)
CODE_SECONDS = Setting(
    "DOWNRIVER_CODE_SECONDS",
    "60",
    "The processor time that one request about code, or one file of a scan, may take, in seconds.",
)
CODE_MB = Setting(
    "DOWNRIVER_CODE_MB",
    "2048",
    "The memory that one request about code, or one file of a scan, may take, in MB.",
)
ANSWER_MB = Setting(
    "DOWNRIVER_ANSWER_MB",
    "64",
    "The largest answer to a request about code, in MB.",
)
YAML_MB = Setting("DOWNRIVER_YAML_MB", "16", "The largest YAML file that is read, in MB.")
YAML_DEPTH = Setting("DOWNRIVER_YAML_DEPTH", "100", "The maximum nesting depth of a YAML file.")
YAML_VALUES = Setting(
    "DOWNRIVER_YAML_VALUES",
    "1000000",
    "The maximum number of values in a YAML file, with aliases expanded.",
)
AUDIT_ENTRIES = Setting(
    "DOWNRIVER_AUDIT_ENTRIES",
    "100000",
    "The number of audit log entries to keep. Identical actions within one minute are one entry.",
)
ALLOWED_HOSTS = Setting(
    "DOWNRIVER_ALLOWED_HOSTS",
    "",
    "The host names by which clients may call a server without API keys, separated by commas, such "
    "as `marquez,host.docker.internal`. Clients on other machines may then also call it.",
)
CORS_ORIGINS = Setting(
    "DOWNRIVER_CORS_ORIGINS",
    "",
    "The origins of web pages that may call the server from a browser, separated by commas, such "
    "as `https://portal.example.com`. Default: none.",
)
OIDC_ISSUER = Setting(
    "DOWNRIVER_OIDC_ISSUER",
    "",
    "The issuer (https://…) of OIDC tokens that the server accepts beside API keys. "
    "Needs the extra `oidc`.",
)
OIDC_AUDIENCE = Setting(
    "DOWNRIVER_OIDC_AUDIENCE",
    "",
    "The audience (`aud`) that a token must have. Required with an issuer.",
)
OIDC_ROLE_CLAIM = Setting(
    "DOWNRIVER_OIDC_ROLE_CLAIM",
    "downriver_role",
    "The claim with the role or roles: reader, writer or admin. The highest one counts. A dot "
    "selects a claim inside another, as in `realm_access.roles`.",
)
OIDC_NAMESPACE_CLAIM = Setting(
    "DOWNRIVER_OIDC_NAMESPACE_CLAIM",
    "downriver_namespaces",
    "The claim with the namespaces that a token is limited to. A token without it is not limited.",
)
SQL_FACETS = Setting(
    "DOWNRIVER_SQL_FACETS",
    "on",
    "Whether to read inputs and outputs from the sql facet of an event that names no dataset: "
    "on or off.",
)
STALE_DAYS = Setting(
    "DOWNRIVER_STALE_DAYS",
    "30",
    "An edge is stale when its job ran this many days after the edge was last seen.",
)
URL = Setting(
    "DOWNRIVER_URL",
    "",
    "The server to which jobs send events, and that lineage() queries. Default: the store.",
)
API_KEY = Setting(
    "DOWNRIVER_API_KEY",
    "",
    "The API key for the server at DOWNRIVER_URL.",
)
SPOOL = Setting(
    "DOWNRIVER_SPOOL",
    "",
    "The folder for events that could not be sent yet. Default: spool/ beside the store.",
)
SPOOL_MB = Setting(
    "DOWNRIVER_SPOOL_MB",
    "1024",
    "The maximum size of the spool, in MB. Events beyond it are dropped and counted.",
)
JOB = Setting(
    "DOWNRIVER_JOB",
    "",
    "The job name of a tracked program. Default: the name of the Spark application.",
)
NAMESPACE = Setting(
    "DOWNRIVER_NAMESPACE",
    "",
    "The namespace of the job of a tracked program. Default: that of its parent run, else `spark`.",
)
LAKE = Setting(
    "DOWNRIVER_LAKE",
    ".downriver/lake",
    "The lake: a directory, or a URL that Spark and Arrow can open, such as s3://….",
)
SIGNING_KEY = Setting(
    "DOWNRIVER_SIGNING_KEY",
    "",
    "The file with the Ed25519 key that signs evidence packs and checkpoints. It is created at the "
    "first use. Default: signing.key beside the store.",
)
CHECKPOINT_TO = Setting(
    "DOWNRIVER_CHECKPOINT_TO",
    "",
    "Where the server writes signed checkpoints of the log: a file, git:PATH or an http(s) URL. "
    "Default: none.",
)
CHECKPOINT_MINUTES = Setting(
    "DOWNRIVER_CHECKPOINT_MINUTES",
    "60",
    "The time between two checkpoints of the server, in minutes.",
)
SCAN_TESTS = Setting(
    "DOWNRIVER_SCAN_TESTS",
    "",
    "If set, a scan also reports data access that it cannot identify in unit tests: "
    "`test_*.py`, `*_test.py` and `conftest.py`.",
)
SETTINGS = (
    STORE,
    MAX_EVENT_MB,
    BODIES_MB,
    MAX_CONNECTIONS,
    HEADERS,
    HEADER_KB,
    HEADER_SECONDS,
    IDLE_SECONDS,
    BODY_SECONDS,
    QUEUE_MB,
    READERS,
    READ_QUEUE,
    WORKERS,
    CODE_SECONDS,
    CODE_MB,
    ANSWER_MB,
    YAML_MB,
    YAML_DEPTH,
    YAML_VALUES,
    AUDIT_ENTRIES,
    ALLOWED_HOSTS,
    CORS_ORIGINS,
    OIDC_ISSUER,
    OIDC_AUDIENCE,
    OIDC_ROLE_CLAIM,
    OIDC_NAMESPACE_CLAIM,
    SQL_FACETS,
    STALE_DAYS,
    URL,
    API_KEY,
    SPOOL,
    SPOOL_MB,
    JOB,
    NAMESPACE,
    LAKE,
    SIGNING_KEY,
    CHECKPOINT_TO,
    CHECKPOINT_MINUTES,
    SCAN_TESTS,
)


def read_text(setting: Setting) -> str:
    """Return the value of a setting."""
    return os.environ.get(setting.name, "") or setting.default


def read_list(setting: Setting) -> tuple[str, ...]:
    """Return the values of a setting that are separated by commas."""
    return tuple(part.strip() for part in read_text(setting).split(",") if part.strip())


def read_number(setting: Setting) -> int:
    """Return the value of a setting that is an integer above zero."""
    text = read_text(setting)
    if not (text.isascii() and text.isdigit()) or len(text) > 9 or int(text) == 0:
        raise InvalidRequestError(setting.name, f"{text!r} is not an integer above zero")
    return int(text)
