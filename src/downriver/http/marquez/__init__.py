"""The API of Marquez under `/api/v1`, so that its clients and its UI work with Downriver."""

from downriver.http.marquez import column_lineage, lineage, run_lineage

ENDPOINTS = (*lineage.ENDPOINTS, *column_lineage.ENDPOINTS, *run_lineage.ENDPOINTS)
