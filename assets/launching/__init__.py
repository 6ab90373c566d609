"""Launching the programs of ``train/``: on this machine, on a Ray cluster, or as a job that is handed over."""

from darkroom.assets.launching.launcher import LauncherResource, Program
from darkroom.assets.launching.run import launch, run_here

__all__ = ["LauncherResource", "Program", "launch", "run_here"]
