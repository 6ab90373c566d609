"""In the lite tier every attack fails but those whose weakness is documented. Slow ones run in the full tier only."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from darkroom.sandbox.doctor import can_run, diagnose
from tests.matrices import every_nth
from tests.sandbox.arena import Arena, open_arena
from tests.sandbox.attacks import ATTACKS, LIMITS, attack, skip_where_it_is_known_to_succeed
from tests.sandbox.test_benign import CELLS

pytestmark = pytest.mark.e2e

# they wait for the limits, which are the same in both tiers
_SLOW = {"overtime", "blobcap", "imgcount"}
_CASES = [case for case in ATTACKS if not _SLOW & set(case["effects"])]
# nothing that fills the memory of the host is tried where no quota stops it
_HELD_OFF = [case for case in _CASES if "weak_in_lite" not in case]
_SHOWN_WEAKNESSES = [case for case in ATTACKS if case["name"] == "what_exists_on_the_host"]


@pytest.fixture(scope="module")
def arena(photo: Path) -> Iterator[Arena]:
    if not can_run("lite", diagnose()):
        pytest.skip("the lite tier cannot run here")
    with open_arena(photo, LIMITS, tier="lite") as arena:
        yield arena


@pytest.mark.parametrize("case", every_nth(_HELD_OFF, 12), ids=lambda case: case["name"])
def test_an_attack_has_no_effect_in_the_lite_tier(arena: Arena, case: dict) -> None:
    skip_where_it_is_known_to_succeed(arena, case)
    damage = attack(arena, case)
    assert damage.faults == []
    assert damage.status in case["acceptable_status"]


@pytest.mark.parametrize("case", _SHOWN_WEAKNESSES, ids=lambda case: case["name"])
def test_a_weakness_that_is_documented_is_there(arena: Arena, case: dict) -> None:
    assert attack(arena, case).faults == ["it said PWNED"]


def test_more_files_than_the_limit_are_an_answer_that_says_so(arena: Arena) -> None:
    with arena.group.session(seed=1) as session:
        observation = session.run(f"for i in range({LIMITS.files} + 30): open(f'{{i:04}}.txt', 'w').write('x')")
    assert observation.ok
    assert len(observation.artefacts) == LIMITS.files
    assert "[30 more files not listed]" in observation.text


def test_the_note_on_a_file_names_no_folder_of_the_host(arena: Arena) -> None:
    with arena.group.session(seed=1) as session:
        observation = session.run("open('broken.png', 'wb').write(b'no image')")
    (artefact,) = observation.artefacts
    assert artefact.note.startswith("not shown: UnidentifiedImageError")
    assert "/mnt/data/temp_processed_images/broken.png" in artefact.note


@pytest.mark.parametrize("name", ["files", "pipe"])
def test_a_legitimate_cell_runs_in_the_lite_tier(arena: Arena, name: str) -> None:
    """Files are copied without their modes, which belong to the host."""
    with arena.group.session(seed=1) as session:
        observation = session.run(CELLS[name])
    assert (observation.status, observation.error) == ("ok", None)
