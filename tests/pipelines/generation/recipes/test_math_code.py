"""Computational code: solved at length, converted to programs, run, verified; and every way of falling out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes.math_code import read_solution, recipe
from darkroom.pipelines.models.policies import (
    Completion,
    CompletionRequest,
    oracle_script,
)
from darkroom.pipelines.records import Sample, Trajectory, Truth
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.storage.workspace import Workspace
from tests.pipelines.scripted import Scripted, oracle, taken_out

PARTITION = "problems-0000"


@pytest.fixture(scope="module")
def family(problems: Workspace) -> Family:
    made = Family(problems, recipe, PARTITION)
    made.draft(oracle(recipe), oracle(recipe))
    made.run(oracle(recipe))
    made.check()
    made.keep()
    made.collect_rejects()
    return made


@pytest.fixture(scope="module")
def kept(family: Family) -> list[Trajectory]:
    return family.workspace.tables.read(family.key("trajectories"), Trajectory)


def test_the_demo_gives_at_least_twenty_rows(kept: list[Trajectory]) -> None:
    assert len(kept) >= 20
    assert all(made.loss_policy == "all_rounds" for made in kept)


def test_some_rows_verify_in_a_second_round_and_some_see_an_image(kept: list[Trajectory]) -> None:
    assert {len(made.rounds) for made in kept} == {1, 2}
    assert {len(made.images) for made in kept} == {0, 1}


def test_no_sentence_shows_the_alternatives_that_it_was_made_of(kept: list[Trajectory]) -> None:
    thoughts = [text for row in kept for text in (*(turn.thought for turn in row.rounds), row.final_thought)]
    assert not [thought for thought in thoughts if "|" in thought]


def test_a_wrong_answer_of_the_source_is_caught_by_what_the_program_prints(family: Family) -> None:
    # reasoning_gym rounds -9 / -(-9 - 0 + -6) = -0.6 to -1
    failed = family.workspace.tables.read_rejects(family.key("trajectories"))
    assert [(reject.source_row, reject.check) for reject in failed] == [("maths/11", "output_supports_answer")]


def test_what_is_no_problem_to_compute_is_not_applicable(family: Family) -> None:
    rejects = taken_out(family)
    assert {reject.reason for reject in rejects} == {"not_applicable", "check_failed"}
    assert all(reject.source_row.startswith("figure/") for reject in rejects if reject.reason == "not_applicable")


def test_the_solution_is_in_no_trajectory(family: Family, kept: list[Trajectory]) -> None:
    assert not any("The final answer is" in turn.thought for made in kept for turn in made.rounds)


# --- the plan


ASKED = Sample("s" * 64, "test", "1", "", (), "What is six times seven?", (), "42", Truth(), "maths")


@pytest.mark.parametrize("text", [r"So \boxed{42}.", r"First \boxed{42}, and again \boxed{42}.", r"$\boxed{42.0}$"])
def test_a_solution_with_the_right_answer_is_material(text: str) -> None:
    assert read_solution(text, ASKED) == {"solution": text}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("It is 42.", "no final answer"),
        ("", "no final answer"),
        (r"\boxed{41}", "is wrong"),
        (r"\boxed{41} or \boxed{42}", "different boxed answers"),
        (r"\boxed{42 or 43}", "is wrong"),
        (r"\boxed{}", "empty"),
        (r"\boxed{42", "never closed"),
        ("x" * 30_000 + r"\boxed{42}", "30010 characters"),
    ],
)
def test_any_other_solution_is_a_wrong_plan(text: str, why: str) -> None:
    with pytest.raises(RowError, match=why) as error:
        read_solution(text, ASKED)
    assert error.value.reason == "wrong_plan"


# --- policies that are not the oracle


@pytest.fixture
def few(problems: Workspace, workspace: Workspace) -> Family:
    """The first four problems in a workspace of their own."""
    samples = problems.tables.read(Family(problems, recipe, PARTITION).samples_key, Sample)[:4]
    family = Family(workspace, recipe, PARTITION)
    facts = {"n_out": 4, "n_rejected": 0, "n_quarantined": 0, "n_retryable": 0, "n_in": 4, "reasons": {}, "usage": {}}
    workspace.tables.write(family.samples_key, Sample, samples, [], inputs="few", facts=facts)
    return family


def reasons(
    family: Family, drafting: Callable[[CompletionRequest], str], converting: Callable[[CompletionRequest], str]
) -> dict[str, int]:
    """Why the rows of a whole run were taken out."""
    writer = Scripted(converting, name="converter")
    reports = [
        family.draft(writer, Scripted(drafting, name="drafter")),
        family.run(writer),
        family.check(),
        family.keep(),
    ]
    return {reason: n for report in reports for reason, n in report.reasons.items()}


def test_the_drafting_policy_solves_and_the_converting_policy_reads_its_solution(few: Family) -> None:
    seen: list[str] = []

    def convert(turn: CompletionRequest) -> str:
        seen.append(str(turn.messages))
        return oracle_script(recipe.family)(turn)

    assert reasons(few, lambda turn: f"Plainly. \\boxed{{{turn.task.sample.answer}}}", convert) == {}
    assert all("Plainly." in text for text in seen)
    made = few.workspace.tables.read(few.key("trajectories"), Trajectory)
    assert {row.provenance.model for row in made} == {"converter"}


def test_a_wrong_solution_is_no_row(few: Family) -> None:
    assert reasons(few, lambda turn: r"\boxed{nonsense}", oracle_script(recipe.family)) == {"wrong_plan": 4}


def test_a_solution_that_the_token_limit_cut_off_is_a_truncated_turn(few: Family) -> None:
    def cut_off(turn: CompletionRequest) -> Completion:
        return Completion(f"\\boxed{{{turn.task.sample.answer}}}, and", finished=False)

    report = few.draft(oracle(recipe), Scripted(cut_off))
    assert report.reasons == {"truncated_turn": 4}


def test_nonsense_of_the_converter_is_a_typed_reject(few: Family) -> None:
    assert reasons(few, oracle_script(recipe.family), lambda turn: "blub <co") == {"malformed_turn": 4}


def _with_code(code: str) -> Callable[[CompletionRequest], str]:
    def write(turn: CompletionRequest) -> str:
        if turn.rounds:
            return f"So.</think>\n<answer>{turn.task.sample.answer}</answer>"
        return f"<think>I compute.\n<code>\n```python\n{code}\n```\n</code>"

    return write


@pytest.mark.parametrize(
    ("converting", "check"),
    [
        (_with_code("print(1 / 0)"), "executes"),
        (_with_code("print('hello')"), "program_computes"),
        (_with_code("print('nothing', len('of interest') + 10**6)"), "output_supports_answer"),
        (lambda turn: "<think>I know.</think>\n<answer>42</answer>", "executes"),
    ],
)
def test_a_trajectory_that_does_not_compute_fails_for_that_reason(few: Family, converting, check: str) -> None:
    assert reasons(few, oracle_script(recipe.family), converting) == {f"check_failed: {check}": 4}


def test_a_problem_without_a_program_is_only_for_models(workspace: Workspace, few: Family) -> None:
    key = few.samples_key
    bare = [replace(sample, truth=Truth()) for sample in few.workspace.tables.read(key, Sample)]
    facts = few.workspace.tables.facts(key)
    few.workspace.tables.write(key, Sample, bare, [], inputs="bare", facts=facts)
    assert few.draft(oracle(recipe), oracle(recipe)).reasons == {"unsuitable": 4}
