"""Suggestions of access policies: Apache Ranger tag policies, and SQL statements.

They are suggestions: a person reviews them before a system gets them.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from downriver.model.trust.privacy import PersonalDataset, PrivacyReport

_ACCESS, _MASKING = 0, 1  # types of policies in Ranger
_SIMPLE = re.compile(r"[a-z_][a-z0-9_]*")
_TABLES = frozenset({"table", "view", "dbt_model", "dataset"})
_READERS = "privacy_readers"


class SqlDialect(str, Enum):
    """The database for which statements are written."""

    POSTGRES = "postgres"
    SNOWFLAKE = "snowflake"
    DATABRICKS = "databricks"


def render_ranger(report: PrivacyReport, tag: str, service: str) -> list[dict[str, Any]]:
    """Return tag policies as `POST /service/public/v2/api/policy` takes them, one at a time.

    Owners of the datasets may read the tagged values. All other users get hashes.
    """
    owners = sorted({owner for each in report.datasets for owner in each.owners})
    columns = [c.column for each in report.datasets for c in each.columns]
    shared: dict[str, Any] = {
        "service": service,
        "isEnabled": True,
        "isAuditEnabled": True,
        "resources": {"tag": {"values": [tag.upper()], "isExcludes": False, "isRecursive": False}},
    }
    about = f"{report.subject} reaches {len(columns)} columns: {', '.join(columns[:20])}"
    accesses = [{"type": "hive:select", "isAllowed": True}]
    access = {
        **shared,
        "name": f"{tag} access",
        "description": about,
        "policyType": _ACCESS,
        "policyItems": [_item(owners, accesses)] if owners else [],
        "denyPolicyItems": [],
        "allowExceptions": [],
        "denyExceptions": [],
    }
    masking = {
        **shared,
        "name": f"{tag} masking",
        "description": about,
        "policyType": _MASKING,
        "dataMaskPolicyItems": [
            *([{**_item(owners, accesses), **_mask("hive:MASK_NONE")}] if owners else []),
            {**_item(["public"], accesses), **_mask("hive:MASK_HASH")},
        ],
    }
    return [access, masking]


def _item(groups: Sequence[str], accesses: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        "accesses": list(accesses),
        "users": [],
        "groups": list(groups),
        "roles": [],
        "conditions": [],
        "delegateAdmin": False,
    }


def _mask(kind: str) -> dict[str, Any]:
    return {"dataMaskInfo": {"dataMaskType": kind}}


def render_sql(
    report: PrivacyReport, dialect: SqlDialect, columns_of: Mapping[str, Sequence[str]]
) -> str:
    """Return statements that mask the field, or grant the other columns only.

    `columns_of` has all columns of each dataset. Datasets that are not tables are left out.
    """
    lines = [f"-- {_comment(report.subject)}: review before you run these statements"]
    if dialect is not SqlDialect.POSTGRES:
        lines += list(_mask_definition(dialect))
    for each in report.datasets:
        if each.columns and each.type in _TABLES:
            lines += ["", f"-- {_comment(each.dataset)}"]
            lines += list(_statements(each, dialect, columns_of.get(each.dataset, ())))
    return "\n".join(lines) + "\n"


def _comment(text: str) -> str:
    return " ".join(text.split())


def _mask_definition(dialect: SqlDialect) -> Iterator[str]:
    if dialect is SqlDialect.SNOWFLAKE:
        yield "CREATE MASKING POLICY IF NOT EXISTS mask_personal AS (value STRING)"
        yield "  RETURNS STRING ->"
        yield f"  CASE WHEN IS_ROLE_IN_SESSION('{_READERS.upper()}')"
        yield "  THEN value ELSE SHA2(value) END;"
    else:
        yield "CREATE FUNCTION IF NOT EXISTS mask_personal(value STRING) RETURNS STRING"
        yield (
            f"  RETURN CASE WHEN is_account_group_member('{_READERS}') "
            "THEN value ELSE sha2(value, 256) END;"
        )


def _statements(
    each: PersonalDataset, dialect: SqlDialect, columns: Sequence[str]
) -> Iterator[str]:
    table = _table(each.name, dialect)
    personal = [column.field for column in each.columns]
    match dialect:
        case SqlDialect.POSTGRES:
            hidden = {name.casefold() for name in personal}
            others = [_quote(name) for name in columns if name.casefold() not in hidden]
            yield f"REVOKE SELECT ON {table} FROM PUBLIC;"  # noqa: S608 — printed, not run
            if others:
                yield f"GRANT SELECT ({', '.join(others)}) ON {table} TO PUBLIC;"
            for owner in each.owners:
                yield f"GRANT SELECT ON {table} TO {_quote(owner)};"
        case SqlDialect.SNOWFLAKE:
            for name in personal:
                yield (
                    f"ALTER TABLE {table} MODIFY COLUMN {_quote(name)} "
                    "SET MASKING POLICY mask_personal;"
                )
        case SqlDialect.DATABRICKS:
            for name in personal:
                quoted = _quote(name, dialect)
                yield f"ALTER TABLE {table} ALTER COLUMN {quoted} SET MASK mask_personal;"


def _table(name: str, dialect: SqlDialect) -> str:
    parts = name.split(".")
    if dialect is SqlDialect.POSTGRES:
        parts = parts[-2:]  # a statement names a schema and a table, and no database
    return ".".join(_quote(part, dialect) for part in parts)


def _quote(name: str, dialect: SqlDialect = SqlDialect.POSTGRES) -> str:
    if _SIMPLE.fullmatch(name):
        return name
    sign = "`" if dialect is SqlDialect.DATABRICKS else '"'
    return sign + name.replace(sign, sign * 2) + sign
