"""The API of Marquez under `/api/v1`, so that its clients and its UI work with Downriver."""

from downriver.http.marquez import lineage

ENDPOINTS = (*lineage.ENDPOINTS,)
