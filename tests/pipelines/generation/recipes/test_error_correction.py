"""Error correction: first a crop that misses, then the right one."""

from __future__ import annotations

import random

import pytest

from darkroom.pipelines.generation.recipes.error_correction import CLEARANCE, wrong
from darkroom.pipelines.models.policies import oracle_script
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from tests.pipelines.scripted import Scripted, run_all

IMAGE = Box(0, 0, 2400, 1500)
TARGETS = [Box(8, 8, 60, 40), Box(2300, 1400, 2390, 1490), Box(1000, 700, 1400, 760), Box(1200, 750, 1230, 780)]


@pytest.mark.parametrize("target", TARGETS)
def test_the_wrong_region_lies_inside_the_image_and_shows_nothing_of_the_target(target: Box) -> None:
    for seed in range(40):
        region = wrong(target.grown(8), target, IMAGE.width, IMAGE.height, random.Random(seed))
        assert IMAGE.contains(region), seed
        assert region.area > 0, seed
        assert region.intersection(target.grown(CLEARANCE)).area == 0, seed


def test_some_misses_are_near_and_some_far() -> None:
    target = TARGETS[3]
    regions = [wrong(target.grown(8), target, IMAGE.width, IMAGE.height, random.Random(seed)) for seed in range(60)]
    near = sum(region.intersection(target.grown(250)).area > 0 for region in regions)
    assert 20 <= near <= 50


def test_an_image_that_the_target_fills_is_unsuitable() -> None:
    with pytest.raises(RowError) as error:
        wrong(Box(0, 0, 100, 100), Box(4, 4, 96, 96), 100, 100, random.Random(0))
    assert error.value.reason is Reason.UNSUITABLE


@pytest.fixture(scope="module")
def chain(signs_chain):
    return signs_chain("error_correction")


def test_the_oracles_rows_err_first_and_pass_every_check(chain, kept) -> None:
    rows = kept(chain[0])
    assert [len(row.rounds) for row in rows.values()] == [2, 2, 2, 2]
    missed = [check.score for row in rows.values() for check in row.checks if check.name == "first_crop_misses"]
    assert missed == [0.0, 0.0, 0.0, 0.0]


def test_a_sample_without_a_box_is_not_applicable(chain, rejects) -> None:
    assert [row.reason for row in rejects(chain[0]).values()] == ["not_applicable"]


def test_the_right_region_is_told_only_beside_the_first_observation(chain) -> None:
    assert len(chain[1].turns) == 12
    for turn in chain[1].turns:
        told = f"right, lower): {turn.task.hint['told_region']}" in str(turn.messages)
        assert told == bool(turn.rounds)
        assert str(turn.messages).count("Region for the second program") == int(bool(turn.rounds))


def test_a_first_crop_that_shows_the_target_is_no_mistake(signs) -> None:
    from darkroom.pipelines.demo.oracle.family_script import crop_code, region_from_text
    from darkroom.pipelines.models.protocols import Thyme

    family = signs("error_correction")

    def knows(turn) -> str:
        if turn.rounds:
            return oracle_script(family.recipe.family)(turn)
        region = region_from_text(turn.task.hint["region"])
        return Thyme().write_round(
            "Here.", crop_code(region, turn.task.sample, label="sign", rng=random.Random(0)), first=True
        )

    reports = run_all(family, Scripted(knows))
    assert reports["trajectories"].reasons == {"check_failed: first_crop_misses": 4}


def test_a_policy_that_says_nothing_between_the_crops_is_rejected(signs) -> None:
    family = signs("error_correction")

    def silent(turn) -> str:
        text = oracle_script(family.recipe.family)(turn)
        return text[text.index("<code>") :] if len(turn.rounds) == 1 else text

    reports = run_all(family, Scripted(silent))
    assert reports["trajectories"].reasons == {"check_failed: second_round_is_explained": 4}


def test_prose_instead_of_turns_gives_typed_rejects(signs) -> None:
    reports = run_all(signs("error_correction"), Scripted(lambda turn: "I am sorry."))
    assert reports["drafts"].reasons == {"malformed_turn": 4, "not_applicable": 1}
