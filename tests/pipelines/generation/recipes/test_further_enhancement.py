"""Further enhancement: first a generous crop, then the exact one."""

from __future__ import annotations

import json
import random

import pytest

from darkroom.pipelines.generation.recipes.further_enhancement import GENEROSITY, MAX_SHARE, MIN_GENEROSITY, generous
from darkroom.pipelines.models.policies import oracle_script
from darkroom.pipelines.records import Draft
from darkroom.pipelines.records.geometry import Box
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from tests.pipelines.scripted import Scripted, run_all

IMAGE = Box(0, 0, 2400, 1500)
EXACTS = [Box(0, 0, 60, 40), Box(2300, 1400, 2400, 1500), Box(1000, 700, 1400, 760), Box(5, 1300, 205, 1340)]


@pytest.mark.parametrize("exact", EXACTS)
def test_the_first_region_holds_the_exact_one_and_is_several_times_as_large(exact: Box) -> None:
    for seed in range(40):
        first = generous(exact, IMAGE.width, IMAGE.height, random.Random(seed))
        assert IMAGE.contains(first), seed
        assert first.contains(exact), seed
        assert MIN_GENEROSITY <= first.area / exact.area <= GENEROSITY[1] * 1.1, seed
        assert first.area <= MAX_SHARE * IMAGE.area, seed


def test_the_factor_and_the_place_are_drawn() -> None:
    drawn = {generous(EXACTS[2], IMAGE.width, IMAGE.height, random.Random(seed)) for seed in range(20)}
    assert len(drawn) == 20


def test_an_image_without_room_around_the_target_is_unsuitable() -> None:
    with pytest.raises(RowError) as error:
        generous(Box(10, 10, 90, 90), 100, 100, random.Random(0))
    assert error.value.reason is Reason.UNSUITABLE


@pytest.fixture(scope="module")
def chain(signs_chain):
    return signs_chain("further_enhancement")


def test_the_oracles_rows_have_two_programs_and_pass_every_check(chain, kept) -> None:
    rows = kept(chain[0])
    assert [len(row.rounds) for row in rows.values()] == [2, 2, 2, 2]
    assert {row.loss_policy for row in rows.values()} == {"last_round"}
    assert len({row.rounds[1].thought for row in rows.values()}) > 1


def test_the_exact_region_is_told_beside_the_first_observation_and_recorded_nowhere(chain, kept) -> None:
    family, policy = chain
    assert len(policy.turns) == 12
    for turn in policy.turns:
        said = str(turn.messages)
        assert turn.task.hint["told_first_region"] in said
        assert (f"right, lower): {turn.task.hint['told_region']}" in said) == bool(turn.rounds)
        assert turn.task.hint["region"] not in said, "nobody knows a place to the pixel"
    for row in kept(family).values():
        assert "Region for the second program" not in str(row)


def test_both_regions_are_secret(chain) -> None:
    family, _ = chain
    drafts = family.workspace.tables.read(family.key("drafts"), Draft)
    assert drafts
    regions = {"first_region", "region", "told_first_region", "told_region"}
    assert all(json.loads(draft.hint).keys() == regions | {"visibility"} for draft in drafts)


def test_a_thought_with_a_number_of_either_region_is_rejected(signs) -> None:
    family = signs("further_enhancement")

    def leaks(turn) -> str:
        number = max(turn.task.hint["first_region"].split(", "), key=int)
        text = oracle_script(family.recipe.family)(turn)
        return text.replace("<think>", f"<think>Up to {number} I see it. ") if not turn.rounds else text

    reports = run_all(family, Scripted(leaks))
    assert reports["trajectories"].reasons == {"check_failed: hint_stays_hidden": 4}


def test_a_policy_that_answers_after_one_crop_is_rejected(signs) -> None:
    family = signs("further_enhancement")

    def hasty(turn) -> str:
        answer = f"It says {turn.task.sample.answer}.</think>\n<answer>{turn.task.sample.answer}</answer>"
        return answer if turn.rounds else oracle_script(family.recipe.family)(turn)

    reports = run_all(family, Scripted(hasty))
    assert reports["trajectories"].reasons == {"check_failed: two_programs": 4}
