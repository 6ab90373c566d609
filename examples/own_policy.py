"""A policy of your own in the rollout loop: anything that writes text can think with images in the sandbox.

    python examples/own_policy.py photo.jpg

The policy here is a list of turns; yours calls a model with ``request.messages``.
"""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

from darkroom.pipelines.generation.rollout import rollout
from darkroom.pipelines.generation.sandbox_sessions import Sandboxes
from darkroom.pipelines.models.messages import ImagePart, message
from darkroom.pipelines.models.policies import Completion, CompletionRequest, PolicyIdentity
from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.records import Sample, Truth
from darkroom.pipelines.storage.workspace import Workspace

TURNS = (
    "<think>The sign is small, so I look closer.\n"
    "<code>\n```python\nimage_clue_0.crop((0, 0, 200, 100)).show()\n```\n</code>",
    "It says open.</think>\n<answer>open</answer>",
)


class TurnsInOrder:
    """A policy: an identity (part of ledger keys and provenance) and ``write``."""

    identity = PolicyIdentity("example", "turns-in-order")
    concurrency = 1
    turns: Iterator[str] = iter(TURNS)

    async def check(self) -> None: ...

    async def write(self, _request: CompletionRequest) -> Completion:
        return Completion(next(self.turns))

    async def close(self) -> None: ...


async def main(path: Path) -> None:
    """Rolls out one question and prints what happened."""
    with Workspace.from_environment() as workspace:
        image = workspace.images.ingest(path.read_bytes())
        sample = Sample("example", "example", path.name, "", (image,), "What does the sign say?", (), "", Truth(), "")
        opening = (message("user", ImagePart(image), sample.question),)
        task = Task("example", "example", sample, (image,), {}, opening, seed=7)
        async with Sandboxes(workspace.images, workspace.ledger).session([image], seed=7) as session:
            done = await rollout(task, policy=TurnsInOrder(), protocol=Thyme(), session=session, max_rounds=4)
    for turn in done.rounds:
        print(f"{turn.thought}\n{turn.code}\n-> {turn.observation.status}, {len(turn.observation.images)} image")
    print(f"{done.final_thought}\nanswer: {done.answer}{f' ({done.error})' if done.error else ''}")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
