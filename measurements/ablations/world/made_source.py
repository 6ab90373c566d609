"""A source that makes its rows: a number and a seed determine them, and there is one shard."""

from dataclasses import dataclass
from typing import ClassVar

from darkroom.pipelines.demo.images import DEMO_VERSION
from darkroom.pipelines.records.digest import digest


@dataclass(frozen=True)
class MadeSource:
    """``n`` pieces of the world; another ``seed`` has other ones."""

    n: int
    seed: int

    name: ClassVar[str]
    constants: ClassVar[tuple[object, ...]]
    """Whatever else determines the rows."""
    n_shards: ClassVar[int] = 1

    @property
    def fingerprint(self) -> str:
        """Digest of the parameters and of the demo that they are made with."""
        return digest([DEMO_VERSION, self.n, self.seed, *self.constants])
