"""Sessions on the record: who shares a group of the sandbox, and until when."""

import asyncio

from darkroom.pipelines.generation.sandbox_sessions import Sandboxes, process_pool
from darkroom.pipelines.storage.workspace import Workspace
from tests.conftest import signed

CODE = "print(image_size, seen)"


def n_groups(sandboxes: Sandboxes) -> int:
    return process_pool(sandboxes.limits).stats().groups


def test_rollouts_about_the_same_images_share_a_group_as_long_as_one_of_them_goes_on(workspace: Workspace) -> None:
    sandboxes = Sandboxes(workspace.images, workspace.ledger)
    image, another = (workspace.images.ingest(signed(seed, "Elm St", (60, 60, 140, 90))) for seed in (1, 2))

    async def rollouts() -> list[int]:
        counts = [n_groups(sandboxes)]
        async with sandboxes.session([image], seed=1) as first:
            async with sandboxes.session([image], seed=2) as second, sandboxes.session([another], seed=3) as third:
                assert (await first.run("seen = 1; print(image_size)")).text == "(640, 480)\n"
                counts.append(n_groups(sandboxes))
                observation = await second.run(CODE)
                assert "NameError" in (observation.error or ""), "a session sees another's variables"
                counts.append(n_groups(sandboxes))
                await third.run("print(image_size)")
                counts.append(n_groups(sandboxes))
            assert (await first.run(CODE)).text == "(640, 480) 1\n"
            counts.append(n_groups(sandboxes))
        return [*counts, n_groups(sandboxes)]

    before, *counts = asyncio.run(rollouts())
    assert [n - before for n in counts] == [1, 1, 2, 1, 0]


def test_a_group_that_ended_fails_no_later_rollout(workspace: Workspace) -> None:
    sandboxes = Sandboxes(workspace.images, workspace.ledger)

    async def rollouts() -> list[str]:
        async with sandboxes.group([]) as group, group.session(seed=1) as first, group.session(seed=2) as second:
            texts = [(await first.run("print('first')")).text]
            assert group._group is not None
            group._group.close()
            return [*texts, (await second.run("print('second')")).text]

    assert asyncio.run(rollouts()) == ["first\n", "second\n"]
