"""Launching the programs of ``train/``: on this machine, on a Ray cluster, or as a job that is handed over."""

from assets.launching.launcher import LauncherResource
from assets.launching.local import run_here
from assets.launching.program import Program
from assets.launching.run import launch

__all__ = ["LauncherResource", "Program", "launch", "run_here"]
