"""Reads a repository without running it: SQL, Python, notebooks, dbt and Feast files."""

from downriver.capture.scan.dbt import find_projects, project_of
from downriver.capture.scan.languages import LANGUAGE_SUFFIXES, find_unread_language
from downriver.capture.scan.registration import (
    AssetRegistration,
    can_be_at,
    candidate_names,
    make_asset_job,
    read_asset_code,
)
from downriver.capture.scan.repository import SQL_SUFFIXES, SUFFIXES, Repository
from downriver.capture.scan.scanner import (
    ScanCatalog,
    ScanResult,
    scan_repository,
    scan_text,
)

__all__ = [
    "LANGUAGE_SUFFIXES",
    "SQL_SUFFIXES",
    "SUFFIXES",
    "AssetRegistration",
    "Repository",
    "ScanCatalog",
    "ScanResult",
    "can_be_at",
    "candidate_names",
    "find_projects",
    "find_unread_language",
    "make_asset_job",
    "project_of",
    "read_asset_code",
    "scan_repository",
    "scan_text",
]
