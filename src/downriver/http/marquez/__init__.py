"""The API of Marquez under `/api/v1`, so that its clients and its UI work with Downriver."""

from downriver.http.marquez import (
    activity,
    column_lineage,
    datasets,
    jobs,
    lineage,
    namespaces,
    run_lineage,
    runs,
    search,
)

ENDPOINTS = (
    *lineage.ENDPOINTS,
    *column_lineage.ENDPOINTS,
    *run_lineage.ENDPOINTS,
    *namespaces.ENDPOINTS,
    *datasets.ENDPOINTS,
    *jobs.ENDPOINTS,
    *runs.ENDPOINTS,
    *search.ENDPOINTS,
    *activity.ENDPOINTS,
)
