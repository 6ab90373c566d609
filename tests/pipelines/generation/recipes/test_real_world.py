"""Real world: the operation that was decided is done in code, seen, and leads to the answer."""

from __future__ import annotations

import json

from darkroom.pipelines.models.protocols import Thyme
from darkroom.pipelines.records import Draft
from darkroom.pipelines.vision.image_transform import Operation
from tests.pipelines.scripted import Scripted, run_all

DONE = "It is the right way up and says A1B.</think>\n<answer>A1B</answer>"


def decides(operation: int, code: str):
    """A policy that decides ``operation`` for every sample and runs ``code``."""

    def write(turn) -> str:
        if turn.task.stage == "plan":
            return f"I think so.\n```json\n{json.dumps({'operation': operation, 'primary': 1, 'issue': 'odd'})}\n```"
        return DONE if turn.rounds else Thyme().write_round("It lies on its side.", code, first=True)

    return write


SAVE = "\nprocessed_path = '/mnt/data/temp_processed_images/a.png'\nimage.save(processed_path)\nprint(processed_path)"
TURN = "from PIL import Image\nimage = Image.open(image_path).rotate(-90, expand=True)" + SAVE
SAME = "from PIL import Image\nimage = Image.open(image_path)" + SAVE


def test_the_oracle_does_every_operation_and_passes_every_check(flawed, kept) -> None:
    family = flawed("real_world")
    run_all(family)
    assert sorted(kept(family)) == ["both", "dim", "large", "turned"]
    hints = {
        draft.trajectory_id: json.loads(draft.hint)
        for draft in family.workspace.tables.read(family.key("drafts"), Draft)
    }
    done = {name: hints[row.trajectory_id]["operation"] for name, row in kept(family).items()}
    assert done == {
        "turned": Operation.DIRECTION,
        "dim": Operation.LIGHTING,
        "large": Operation.REGION,
        "both": Operation.COMBINED,
    }


def test_what_can_be_answered_directly_is_not_applicable(flawed, rejects) -> None:
    family = flawed("real_world")
    run_all(family)
    assert [(name, row.reason) for name, row in rejects(family).items()] == [("plain", "not_applicable")]
    assert "decided -1 (none)" in rejects(family)["plain"].evidence


def test_an_image_left_as_it_was_is_not_the_operation_that_was_decided(flawed) -> None:
    reports = run_all(flawed("real_world"), Scripted(decides(1, SAME)))
    assert reports["trajectories"].reasons == {"check_failed: operation_applied": 5}


def test_a_turn_that_puts_the_image_upright_is_kept(flawed, kept) -> None:
    family = flawed("real_world")
    run_all(family, Scripted(decides(1, TURN)))
    assert {"turned", "both"} <= kept(family).keys()


def test_a_turn_the_wrong_way_is_ineffective(flawed, rejects) -> None:
    family = flawed("real_world")
    run_all(family, Scripted(decides(1, TURN.replace("-90", "90"))))
    assert rejects(family)["turned"].check == "judge_effective"
    assert rejects(family)["both"].check == "judge_effective"


def test_the_decision_is_told_in_words_and_not_as_a_number(flawed) -> None:
    policy = Scripted(decides(2, SAME))
    flawed("real_world").draft(policy)
    told = [str(turn.messages) for turn in policy.turns if turn.task.stage == "rollout"]
    assert len(told) == 5
    assert all("another lighting: more contrast" in text and "'operation'" not in text for text in told)


def test_a_second_program_is_one_too_many(flawed) -> None:
    write = decides(1, TURN)

    def twice(turn) -> str:
        return Thyme().write_round("Again.", TURN, first=False) if turn.rounds else write(turn)

    reports = run_all(flawed("real_world"), Scripted(twice))
    assert reports["runs"].reasons == {"too_many_rounds": 5}


def test_an_oracle_that_knows_of_nothing_to_do_says_so(flawed, rejects) -> None:
    from darkroom.pipelines.models.policies import oracle_policy

    family = flawed("real_world")
    planner = Scripted(lambda turn: '{"operation": 3}')
    report = family.draft(oracle_policy(family.recipe.family, revision="x"), planner)
    assert report.reasons == {"wrong_plan": 1}


def test_a_judge_sees_the_question_image_and_what_the_program_showed(flawed) -> None:
    family = flawed("real_world")
    run_all(family)
    judge = Scripted(lambda turn: '{"reason": "upside down", "verdict": false}')
    family.check(judge)
    report = family.keep()
    assert report.reasons == {"check_failed: consistency": 4}
    asked = [turn for turn in judge.turns if turn.task.family == "judge_effective"]
    images = [[part for part in turn.messages[1].parts if hasattr(part, "image")] for turn in asked]
    assert [len(shown) for shown in images] == [2, 2, 2, 2]
