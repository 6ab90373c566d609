"""A case: what checks and judges are given."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from darkroom.pipelines.records import ImageRef, Sample, Trajectory
from darkroom.pipelines.storage.images import ImageStore


@dataclass(frozen=True, slots=True)
class Case:
    """A finished rollout with everything that is known about it."""

    sample: Sample
    trajectory: Trajectory
    hint: Mapping[str, Any]
    store: ImageStore

    @property
    def observed(self) -> tuple[ImageRef, ...]:
        """The images that the rounds showed, in their order."""
        return tuple(image for turn in self.trajectory.rounds for image in turn.observation.images)

    def texts(self, label: str, read: Callable[[str], str]) -> Iterator[tuple[str, str]]:
        """Each round's thought and what ``read`` makes of its code, called ``label``; then the final thought."""
        for n, turn in enumerate(self.trajectory.rounds, 1):
            yield f"the thought of round {n}", turn.thought
            yield f"{label} of round {n}", read(turn.code)
        yield "the final thought", self.trajectory.final_thought
