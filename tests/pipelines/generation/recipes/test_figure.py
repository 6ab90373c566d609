"""Figure: problems in words that are drawn, looked at and answered; nothing is shown but the drawing."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction

import pytest

from darkroom.pipelines.generation.engine import Family
from darkroom.pipelines.generation.recipes.figure import prepare, recipe
from darkroom.pipelines.models.protocols import ToolCall
from darkroom.pipelines.records import Sample, Trajectory, Truth
from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.records.samples import details_of
from darkroom.pipelines.storage.workspace import Workspace
from darkroom.pipelines.verification.grading import grade
from tests.pipelines.scripted import run_all, taken_out

pytestmark = pytest.mark.e2e  # on every row of the embedded source
PARTITION = "problems-0000"
TRIANGLE = "What is the area of the triangle with the vertices (0, 0), (4, 0) and (0, 3)?"


@pytest.fixture(scope="module")
def family(problems: Workspace) -> Family:
    made = Family(problems, recipe, PARTITION)
    run_all(made)
    return made


@pytest.fixture(scope="module")
def kept(family: Family) -> list[Trajectory]:
    return family.workspace.tables.read(family.key("trajectories"), Trajectory)


def test_every_figure_problem_of_the_demo_becomes_a_row(kept: list[Trajectory]) -> None:
    assert len(kept) == 40


def test_the_sample_has_no_image_and_the_program_draws_the_only_one(kept: list[Trajectory]) -> None:
    assert all(made.images == () for made in kept)
    assert all(len(made.shown_images) == 1 for made in kept)


def test_no_program_prints_the_answer_which_is_read_off_the_drawing(kept: list[Trajectory]) -> None:
    assert {made.rounds[0].observation.text for made in kept} == {""}


def test_what_is_read_off_comes_to_the_answer(family: Family) -> None:
    """By another way than the source's: the numbers of the reading, put together as it says."""
    n_read = 0
    for sample in family.workspace.tables.read(family.samples_key, Sample):
        solution = details_of(sample)["worked"] if sample.source_row.startswith("figure") else {"seen": ""}
        numbers = [float(Fraction(number)) for number in re.findall(r"\d+(?:/\d+)?", solution["seen"])]
        match re.search(r"hollow|row by row|column|cover|legs", solution["seen"]):
            case re.Match() as read if read[0] == "hollow":
                value = numbers[0] + numbers[1] / 2 - 1
            case re.Match() as read if read[0] == "row by row":
                value = sum(numbers)
            case re.Match() as read if read[0] == "column":
                value = numbers[0] + 2 * sum(numbers[1:])
            case re.Match() as read if read[0] == "cover":
                value = sum(numbers[1::2]) - sum(numbers[::2])
            case re.Match():
                value = numbers[0] * numbers[1] / math.hypot(*numbers)
            case _:
                continue
        n_read += 1
        assert grade(repr(value) if "sqrt" not in sample.answer else sample.answer, sample).right
        assert value == pytest.approx(_value(sample.answer)), sample.question
    assert n_read == 25


def _value(answer: str) -> float:
    roots = re.sub(r"\\frac\{(.*)\}\{(\d+)\}", r"(\1)/\2", answer)
    roots = re.sub(r"(\d*)\\sqrt\{(\d+)\}", lambda root: f"{root[1] or 1}*{root[2]}**0.5", roots)
    assert re.fullmatch(r"[\d.*/()]+", roots), answer
    return float(eval(roots))


def test_rows_are_written_as_tool_calls(kept: list[Trajectory]) -> None:
    said = ToolCall().write_round(kept[0].rounds[0].thought, kept[0].rounds[0].code, first=True)
    assert '{"name": "code_interpreter"' in said


def test_problems_that_no_drawing_helps_with_are_unsuitable(family: Family) -> None:
    rejects = taken_out(family)
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
        (asked("What is 2 + 2?"), "unsuitable"),
        (asked(details={"drawing_helps": False}), "unsuitable"),
    ],
)
def test_any_other_sample_says_why_not(sample: Sample, reason: str, store) -> None:
    with pytest.raises(RowError) as error:
        prepare(sample, store)
    assert error.value.reason == reason
