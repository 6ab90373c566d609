"""Runs that commands start: the Dagster instance, jobs in this process, whole builds."""
