"""The log and the catalog folded from it: SQLite embedded, PostgreSQL for teams."""

from downriver.store.chain import Verification, verify_chain
from downriver.store.describing import Run
from downriver.store.keys import ApiKey, KeyRole, key_digest, parse_role
from downriver.store.locate import find_home, open_store
from downriver.store.port import Receipt, Store, StoreState
from downriver.store.reader import Counts, Reader
from downriver.store.sqlite import MEMORY
from downriver.store.writer import GroupCommit

__all__ = [
    "MEMORY",
    "ApiKey",
    "Counts",
    "GroupCommit",
    "KeyRole",
    "Reader",
    "Receipt",
    "Run",
    "Store",
    "StoreState",
    "Verification",
    "find_home",
    "key_digest",
    "open_store",
    "parse_role",
    "verify_chain",
]
