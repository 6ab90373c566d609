"""The shards of ``tests/pipelines/rl/shards.py``, as fixtures of these tests."""

from tests.pipelines.rl.shards import candidates, checked, rated, shard

__all__ = ["candidates", "checked", "rated", "shard"]
