"""Every attack of cases/attacks*.json fails: checked from the host, in the full tier (every sixth in `make e2e`)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.matrices import every_nth
from tests.sandbox.arena import Arena, open_arena
from tests.sandbox.attacks import ATTACKS, LIMITS, attack, skip_where_it_is_known_to_succeed

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def arena(full_tier: None, photo: Path) -> Iterator[Arena]:
    with open_arena(photo, LIMITS, tier="full") as arena:
        yield arena


@pytest.mark.parametrize("case", every_nth(ATTACKS, 6), ids=lambda case: case["name"])
def test_an_attack_has_no_effect(arena: Arena, case: dict) -> None:
    skip_where_it_is_known_to_succeed(arena, case)
    damage = attack(arena, case)
    assert damage.faults == []
    assert damage.status in case["acceptable_status"]


@pytest.mark.parametrize("seed", [-1, -(2**65), 2**32, 2**64 - 1, 2**200])
def test_a_seed_of_any_size_is_a_seed(arena: Arena, seed: int) -> None:
    def numbers() -> str:
        with arena.group.session(seed=seed) as session:
            return session.run("import random\nprint(random.random(), np.random.rand())").text

    assert numbers() == numbers() != ""
