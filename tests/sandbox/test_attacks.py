"""Every attack of cases/attacks.json fails: checked from the host, in the full tier."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import SandboxPool
from tests.sandbox.attacks import ATTACKS, LIMITS, TOKEN, Arena, attack, canary_folder


@pytest.fixture(scope="module")
def arena(full_tier: None, photo: Path) -> Iterator[Arena]:
    folder = canary_folder()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("CANARY_SECRET", TOKEN)
        with SandboxPool(limits=LIMITS, tier="full") as pool, pool.group([photo]) as group:
            arena = Arena(pool, group, photo, folder)
            yield arena
            arena.close()
    shutil.rmtree(folder)


@pytest.mark.parametrize("case", ATTACKS, ids=lambda case: case["name"])
def test_an_attack_has_no_effect(arena: Arena, case: dict) -> None:
    damage = attack(arena, case)
    assert damage.faults == []
    assert damage.status in case["acceptable_status"]
