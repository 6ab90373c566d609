"""Inspection, as publishing, begins where the RL stages end: with their shards."""

from tests.pipelines.rl.shards import candidates, checked, rated, shard

__all__ = ["candidates", "checked", "rated", "shard"]
