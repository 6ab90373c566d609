"""Figure: problems in words that are drawn, looked at and answered; nothing is shown but the drawing."""

from __future__ import annotations

import json

import pytest

from pipelines.generation.engine import Family
from pipelines.generation.recipes.figure import prepare, recipe
from pipelines.models.policies import oracle_policy
from pipelines.models.protocols import ToolCall
from pipelines.records import ImageRef, Reject, Sample, Trajectory, Truth
from pipelines.records.reject_reasons import RowError
from pipelines.storage.workspace import Workspace
from pipelines.verification.case import Case
from pipelines.verification.checks import output_supports_answer, program_computes

pytestmark = pytest.mark.e2e  # on every row of the embedded source
PARTITION = "problems-0000"
TRIANGLE = "What is the area of the triangle with the vertices (0, 0), (4, 0) and (0, 3)?"


@pytest.fixture(scope="module")
def family(problems: Workspace) -> Family:
    made = Family(problems, recipe, PARTITION)
    policy = oracle_policy(recipe.family, revision=recipe.digest)
    made.draft(policy)
    made.run(policy)
    made.check()
    made.keep()
    made.collect_rejects()
    return made


@pytest.fixture(scope="module")
def kept(family: Family) -> list[Trajectory]:
    return family.workspace.tables.read(family.key("trajectories"), Trajectory)


def test_every_figure_problem_of_the_demo_becomes_a_row(kept: list[Trajectory]) -> None:
    assert len(kept) == 40


def test_the_sample_has_no_image_and_the_program_draws_the_only_one(kept: list[Trajectory]) -> None:
    assert all(made.images == () for made in kept)
    assert all(len(made.shown_images) == 1 for made in kept)


def test_every_answer_is_what_the_drawing_program_computes(family: Family, kept: list[Trajectory]) -> None:
    samples = {sample.sample_id: sample for sample in family.workspace.tables.read(family.samples_key, Sample)}
    for made in kept:
        case = Case(samples[made.sample_id], made, {}, family.workspace.images)
        assert output_supports_answer(case).passed, case.sample.source_row
        assert program_computes(case).passed, case.sample.source_row


def test_rows_are_written_as_tool_calls(kept: list[Trajectory]) -> None:
    said = ToolCall().write_round(kept[0].rounds[0].thought, kept[0].rounds[0].code, first=True)
    assert '{"name": "code_interpreter"' in said


def test_problems_that_no_drawing_helps_with_are_unsuitable(family: Family) -> None:
    rejects = family.workspace.tables.read(family.key("rejects"), Reject)
    found = {(reject.source_row.split("/")[0], reject.reason) for reject in rejects}
    assert found == {("maths", "unsuitable"), ("diagram", "not_applicable")}


def asked(question: str = TRIANGLE, *, category: str = "geometry", details=None, images=()) -> Sample:
    truth = Truth(details=None if details is None else json.dumps(details))
    return Sample("s" * 64, "test", "1", "", images, question, (), "6", truth, category)


@pytest.mark.parametrize(
    "sample", [asked(), asked(category="Mathematics"), asked("Sum?", details={"drawing_helps": True})]
)
def test_a_problem_in_words_that_can_be_drawn_is_prepared_without_an_image(sample: Sample, store) -> None:
    assert prepare(sample, store).images == ()


@pytest.mark.parametrize(
    ("sample", "reason"),
    [
        (asked(category="OCR"), "not_applicable"),
        (asked(images=(ImageRef("0" * 64, 1, 1, "L", "PNG"),)), "not_applicable"),
        (asked("What is 2 + 2?"), "unsuitable"),
        (asked(details={"drawing_helps": False}), "unsuitable"),
    ],
)
def test_any_other_sample_says_why_not(sample: Sample, reason: str, store) -> None:
    with pytest.raises(RowError) as error:
        prepare(sample, store)
    assert error.value.reason == reason
