"""The log and the catalog: SQLite (embedded) or PostgreSQL (for teams)."""

from downriver.store.access.keys import ApiKey, KeyRole, key_digest, parse_role
from downriver.store.access.scoped_store import ScopedStore, check_event
from downriver.store.audit import AuditAct, AuditEntry, AuditFilter
from downriver.store.backup import write_backup
from downriver.store.catalog.facets import LABEL_FACETS, Run
from downriver.store.catalog.reader import CatalogCounts, CatalogReader
from downriver.store.group_commit import GroupCommit
from downriver.store.hash_chain import Verification, verify_chain
from downriver.store.location import find_home, open_store
from downriver.store.port import Receipt, Store, StoreState
from downriver.store.sqlite import MEMORY

__all__ = [
    "LABEL_FACETS",
    "MEMORY",
    "ApiKey",
    "AuditAct",
    "AuditEntry",
    "AuditFilter",
    "CatalogCounts",
    "CatalogReader",
    "GroupCommit",
    "KeyRole",
    "Receipt",
    "Run",
    "ScopedStore",
    "Store",
    "StoreState",
    "Verification",
    "check_event",
    "find_home",
    "key_digest",
    "open_store",
    "parse_role",
    "verify_chain",
    "write_backup",
]
