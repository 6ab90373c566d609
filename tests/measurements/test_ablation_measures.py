"""How the ablations count rollouts and read the log of a training."""

from dataclasses import replace

import pytest

from measurements.ablations import evaluations
from measurements.ablations.catalog import EXPERIMENTS
from measurements.ablations.evaluations import evaluation_settings, of_rollouts, of_training

PROOF = EXPERIMENTS["learning_proof"]


def rolled(category, *, right=True, rounds=(), seen=(), question="in the region 100, 100, 200, 200?"):
    """A rollout on a question of a category; its rounds are not looked into."""
    rounds = [{"observation": {"status": "ok"}} for _ in rounds]
    images = [{"width": 480, "height": 360}]
    found = {"question": question, "category": category, "images": images, "right": right, "fault": None}
    return {**found, "rounds": rounds, "seen": list(seen)}


def test_rollouts_are_counted():
    def rollout(right, statuses, box=None, fault=None):
        return {
            "question": "What colour is the street sign in the region 100, 100, 200, 200?",
            "category": "attribute",
            "images": [{"width": 480, "height": 360}],
            "right": right,
            "fault": fault,
            "rounds": [{"observation": {"status": status}} for status in statuses],
            "seen": [{"round": 0, "box": box, "share": None if box is None else 0.1}],
        }

    found = of_rollouts(
        [
            rollout(True, ["error", "ok"], box=[100, 100, 200, 160]),
            rollout(True, [], box=None),
            rollout(False, ["ok"], box=[100, 100, 200, 140]),
            rollout(False, ["error"], fault="malformed_turn"),
        ]
    )
    assert found == {
        "right": 0.5,
        "executed": 0.5,
        "unanswered": 0.25,
        "tool_use": 0.75,
        "calls": 1.0,
        "faithful": 0.25,
    }


def test_an_image_of_almost_the_whole_is_not_faithful():
    whole = {"round": 0, "box": [0, 0, 480, 360], "share": 1.0}
    assert of_rollouts([rolled("attribute", seen=[whole])])["faithful"] == 0.0


def test_a_region_in_shares_of_the_image_is_compared_in_its_pixels():
    crop = {"round": 0, "box": [48, 36, 240, 180], "share": 0.16}
    one = rolled("far", seen=[crop], question="in the region 0.101, 0.101, 0.501, 0.501?")
    assert of_rollouts([one])["faithful"] == 1.0


def test_a_crop_of_either_region_of_a_question_is_faithful():
    crop = {"round": 0, "box": [300, 200, 340, 240], "share": 0.01}
    one = rolled("two_looks", seen=[crop], question="in the regions 100, 100, 200, 200 and 300, 200, 350, 250?")
    assert of_rollouts([one])["faithful"] == 1.0


def test_where_no_region_is_named_nothing_is_faithful():
    crop = {"round": 0, "box": [48, 36, 240, 180], "share": 0.16}
    one = rolled("attribute", seen=[crop], question="What colour is the street sign in frame 126?")
    assert of_rollouts([one])["faithful"] == 0.0


def test_questions_of_a_category_are_counted_apart():
    found = of_rollouts(
        [rolled("far", right=False, rounds=["look"]), rolled("near"), rolled("near", rounds=["look"] * 3)]
    )
    assert (found["right_far"], found["right_near"]) == (0.0, 1.0)
    assert (found["tool_use_far"], found["tool_use_near"]) == (1.0, 0.5)
    assert (found["calls_far"], found["calls_near"]) == (1.0, 1.5)
    assert "right_two_looks" not in found


def test_other_questions_have_measures_of_their_own_name(tmp_path, monkeypatch):
    monkeypatch.setattr(
        evaluations, "_evaluated", lambda arm, root, seed, questions: {"right": float(questions == "held_out")}
    )
    arm = replace(PROOF.arms[1], questions=("held_out", "held_out_sums"))
    assert evaluations.measures(arm, tmp_path, 3) == {"right": 1.0, "sums_right": 0.0}
    output = evaluation_settings(arm, tmp_path, 3, "held_out_sums").output
    assert output != evaluation_settings(arm, tmp_path, 3).output


def test_code_blocks_weigh_the_share_that_ran():
    steps = [
        {"tool_calls": 3.0, "executable_rate": 1.0, "accuracy": 1.0},
        {"tool_calls": 1.0, "executable_rate": 0.0, "accuracy": 0.5, "positive_with_negative_advantage": 0.5},
        {"tool_calls": 0.0, "accuracy": 0.0},
    ]
    found = of_training(steps)
    assert found["rolled_executable"] == 0.75
    assert found["rolled_right"] == 0.5
    assert found["last_calls"] == 0.0
    assert found["rolled_positive_negative"] == pytest.approx(1 / 6)


def test_the_start_and_the_end_of_a_training_are_a_quarter_each():
    steps = [
        {"tool_calls": 1.0, "tool_use": step / 8, "accuracy": 0.0, "executable_rate": 1.0, "parts/faithful": step / 8}
        for step in range(8)
    ]
    found = of_training(steps)
    assert (found["first_faithful"], found["last_faithful"]) == (0.5 / 8, 6.5 / 8)
    assert found["last_tool_use"] == 6.5 / 8
