"""Hooks for orchestrators: Airflow, Prefect and Dagster. Import the module of the orchestrator.

A hook never breaks a run: an error in Downriver is logged, and events that cannot be sent are
spooled.
"""
