"""The embedded policy's part in the RL stages: as often right as it was planted, and read by the real readers."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from math import sqrt
from random import Random

import pytest

from darkroom.pipelines.demo.oracle.rl_answers import (
    LARGE,
    MALFORMED,
    RELABEL,
    RELABEL_AMBIGUOUS,
    SCREEN_ERROR,
    SUITABILITY_ERROR,
    TINY,
    competence,
    competence_with_tools,
    right_answer,
    script,
    target_share,
    wrong_answer,
)
from darkroom.pipelines.demo.rl_questions import DemoRLSource
from darkroom.pipelines.models.policies.policy import Completion, CompletionRequest
from darkroom.pipelines.models.protocols import ToolCall
from darkroom.pipelines.models.protocols.markup import Malformed, ParsedTurn
from darkroom.pipelines.models.tasks import Task
from darkroom.pipelines.records import Observation, Round, Sample, Truth
from darkroom.pipelines.records.answers import final_answer
from darkroom.pipelines.records.samples import details_of
from darkroom.pipelines.sources.ingest import ingest_shard
from darkroom.pipelines.storage.images import ImageStore
from darkroom.pipelines.verification.grading import grade, grader_of
from darkroom.pipelines.verification.judges.judge import yes_or_no

N = 1200
ANSWERING = ("relabel", "pass_rate")
VOTING = ("belongs_together", "self_contained", "suitability", "judge_answer")


@pytest.fixture(scope="module")
def samples(tmp_path_factory) -> dict[str, Sample]:
    store = ImageStore(str(tmp_path_factory.mktemp("store")))
    return {sample.source_row: sample for sample in ingest_shard(DemoRLSource(), 0, store).samples}


def turn(
    sample: Sample, family: str, seed: int, *, mode: str = "free", rounds: tuple[Round, ...] = ()
) -> CompletionRequest:
    task = Task("t" * 64, family, sample, sample.images, {}, (), seed, mode=mode)
    return CompletionRequest((), (), seed, task, rounds)


def ballots(sample: Sample, family: str) -> Counter[bool | None]:
    return Counter(yes_or_no(Completion(script(turn(sample, family, seed)))).says for seed in range(N))


def share_right(sample: Sample, family: str) -> float:
    said = [final_answer(script(turn(sample, family, seed))) for seed in range(N)]
    return sum(one == right_answer(sample) for one in said) / N


def near(share: float, wanted: float) -> bool:
    """Within five standard deviations of the mean of N draws."""
    return abs(share - wanted) <= 5 * sqrt(wanted * (1 - wanted) / N) + 1e-9


@pytest.mark.parametrize(
    ("family", "row", "wanted"),
    [
        ("belongs_together", "plate/03", True),
        ("belongs_together", "mismatch/01", False),
        ("belongs_together", "outside_knowledge/01", True),
        ("self_contained", "dial/02", True),
        ("self_contained", "outside_knowledge/02", False),
        ("self_contained", "mismatch/00", True),
    ],
)
def test_a_screen_is_wrong_as_often_as_planted(samples, family, row, wanted):
    said = ballots(samples[row], family)
    assert near(said[not wanted] / N, SCREEN_ERROR * (1 - MALFORMED))


@pytest.mark.parametrize(("row", "wanted"), [("construction/00-03", True), ("reckoning/01-02", False)])
def test_a_vote_on_suitability_is_flipped_as_often_as_planted(samples, row, wanted):
    said = ballots(samples[row], "suitability")
    assert near(said[not wanted] / N, SUITABILITY_ERROR * (1 - MALFORMED))


@pytest.mark.parametrize(
    ("question", "wanted"),
    [("In triangle ABC the bisector at A meets BC in D. How long is BD?", True), ("Solve 3x = 12.", False)],
)
def test_without_a_label_the_words_of_a_problem_decide_on_suitability(samples, question, wanted):
    sample = replace(samples["reckoning/00-00"], question=question, truth=Truth())
    said = ballots(sample, "suitability")
    assert said[wanted] > 5 * said[not wanted]


def test_the_embedded_judge_of_answers_says_no(samples):
    said = ballots(samples["route/00"], "judge_answer")
    assert said[True] == 0
    assert near(said[None] / N, MALFORMED)


@pytest.mark.parametrize("family", ANSWERING)
def test_one_answer_in_sixty_is_malformed(samples, family):
    said = [final_answer(script(turn(samples["board/01"], family, seed))) for seed in range(N)]
    assert near(said.count(None) / N, MALFORMED)


@pytest.mark.parametrize("family", VOTING)
def test_one_vote_in_sixty_is_malformed(samples, family):
    assert near(ballots(samples["plate/00"], family)[None] / N, MALFORMED)


@pytest.mark.parametrize(
    ("row", "wanted"), [("sector/01", RELABEL), ("wrong_label/01", RELABEL), ("ambiguous/00", RELABEL_AMBIGUOUS)]
)
def test_a_second_opinion_is_the_true_answer_as_often_as_planted(samples, row, wanted):
    assert near(share_right(samples[row], "relabel"), wanted * (1 - MALFORMED))


def test_the_true_answer_of_a_wrong_label_is_not_the_label(samples):
    wrong = [sample for row, sample in samples.items() if row.startswith("wrong_label/")]
    assert len(wrong) == 6
    for sample in wrong:
        assert not grade(right_answer(sample), sample, grader_of(sample)).right, sample.source_row


@pytest.mark.parametrize("row", ["trivial/02", "place/02", "construction/02-05", "colour/06"])
def test_the_student_is_right_as_often_as_it_is_able(samples, row):
    assert near(share_right(samples[row], "pass_rate"), competence(samples[row]) * (1 - MALFORMED))


def test_trivial_questions_are_always_solved(samples):
    assert {competence(samples[f"trivial/{n:02d}"]) for n in range(4)} == {1.0}


def renamed(sample: Sample) -> list[Sample]:
    return [replace(sample, sample_id=f"{n:064x}") for n in range(N)]


def test_an_eighth_is_never_solved_and_an_eighth_always(samples):
    able = [competence(sample) for sample in renamed(samples["colour/03"])]
    assert near(able.count(0.0) / N, 0.12)
    assert near(able.count(1.0) / N, 0.12)
    assert all(one in (0.0, 1.0) or 0.2 <= one <= 0.8 for one in able)


def test_tiny_targets_are_solved_less_often(samples):
    tiny, large = samples["place/00"], samples["place/03"]
    assert target_share(tiny) < TINY < LARGE < target_share(large)
    able = [[competence(sample) for sample in renamed(one)] for one in (tiny, large)]
    assert sum(able[0]) < 0.6 * sum(able[1])


def test_tools_help_with_small_targets_and_stand_in_the_way_of_large_ones(samples):
    for sample in renamed(samples["place/00"])[:50]:
        assert competence_with_tools(sample) > competence(sample) + 0.3
    for sample in renamed(samples["place/03"])[:50]:
        assert competence_with_tools(sample) <= competence(sample)


def test_a_drawing_helps_with_problems_that_are_suitable_for_one(samples):
    assert all(
        competence_with_tools(one) > competence(one)
        for one in renamed(samples["construction/00-00"])[:9]
        if competence(one) < 1
    )
    assert all(competence_with_tools(one) == competence(one) for one in renamed(samples["reckoning/00-00"])[:9])


def test_pass_rates_of_the_demo_are_spread(samples):
    able = Counter(min(3, int(4 * competence(sample))) for sample in samples.values())
    assert min(able[n] for n in range(4)) >= 20


def test_every_right_answer_passes_its_grader(samples):
    for sample in samples.values():
        if details_of(sample).get("planted") != "wrong_label":
            assert grade(right_answer(sample), sample, grader_of(sample)).right, sample.source_row


def test_no_slip_passes_the_grader(samples):
    for seed, sample in enumerate(samples.values()):
        true, wrong = replace(sample, answer=right_answer(sample)), wrong_answer(sample, Random(seed))
        assert wrong.strip(), sample.source_row
        assert not grade(wrong, true, grader_of(true)).right, (sample.source_row, wrong)


def test_a_slip_on_a_choice_is_another_choice(samples):
    wrong = {wrong_answer(samples["colour/00"], Random(seed)) for seed in range(40)}
    assert wrong == set("ABCD") - {samples["colour/00"].answer}


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        *(
            ("yes", "Is it?"),
            ("7", "How many?"),
            ("0", "How many?"),
            ("-3.50", "Which number?"),
            ("12:30", "What time?"),
        ),
        *((r"\pi", "Which area?"), ("The dog sleeps.", "What happens?"), ("円", "Which sign?"), ("x", "Which letter?")),
        *(("red, blue and green", "Which colours?"), ("STOP", "What does it say?"), ("1/2", "Which share?")),
    ],
)
def test_any_kind_of_answer_has_a_slip(samples, answer, question):
    sample = replace(samples["plate/00"], question=question, answer=answer, category="")
    for seed in range(3):
        assert not grade(wrong_answer(sample, Random(seed)), sample).right


def parsed(text: str) -> ParsedTurn:
    found = ToolCall().parse(text)
    assert isinstance(found, ParsedTurn), found
    return found


def test_without_tools_the_student_answers_at_once(samples):
    said = [script(turn(samples["plate/07"], "tool_necessity", seed, mode="forbidden")) for seed in range(60)]
    read = [ToolCall().parse(text) for text in said]
    assert all(isinstance(one, Malformed) or (one.code is None and one.answer) for one in read)


def test_with_tools_forced_it_first_looks_at_the_target(samples):
    for row in ("place/00", "plate/01", "photograph/02", "dial/00"):
        sample = samples[row]
        code = parsed(script(turn(sample, "tool_necessity", 5, mode="forced"))).code
        assert code is not None
        sides = json.loads(code[code.index("[") : code.index("]") + 1])
        assert code.endswith("target_image=1)")
        (image,), box = sample.images, sample.truth.boxes[0].box
        assert 0 <= sides[0] * image.width <= box.x1 < box.x2 <= sides[2] * image.width <= image.width
        assert 0 <= sides[1] * image.height <= box.y1 < box.y2 <= sides[3] * image.height <= image.height


def test_without_a_known_target_it_looks_at_the_middle(samples):
    code = parsed(script(turn(samples["count/00"], "tool_necessity", 5, mode="forced"))).code
    assert code == "crop_image_normalized(bbox_2d=[0.25, 0.25, 0.75, 0.75], target_image=1)"


def test_without_an_image_it_runs_a_program(samples):
    for row in ("construction/00-00", "reckoning/00-05"):
        code = parsed(script(turn(samples[row], "tool_necessity", 5, mode="forced"))).code
        assert code is not None
        compile(code, row, "exec")


@pytest.mark.parametrize("row", ["place/00", "plate/09", "construction/00-03"])
def test_after_the_call_it_answers_as_well_as_it_can_with_tools(samples, row):
    seen = (Round("I look.", "crop_image_normalized(bbox_2d=[0, 0, 1, 1], target_image=1)", Observation("ok", "")),)
    said = [script(turn(samples[row], "tool_necessity", seed, mode="forced", rounds=seen)) for seed in range(N)]
    read = [ToolCall().parse(text) for text in said]
    right = sum(isinstance(one, ParsedTurn) and one.answer == right_answer(samples[row]) for one in read)
    assert near(right / N, competence_with_tools(samples[row]) * (1 - MALFORMED))
    assert near(sum(isinstance(one, Malformed) for one in read) / N, MALFORMED)


@pytest.mark.parametrize("family", [*VOTING, *ANSWERING, "tool_necessity"])
def test_the_same_turn_is_written_the_same(samples, family):
    def write(seed: int) -> list[str]:
        return [
            script(turn(samples[row], family, seed, mode="forbidden")) for row in ("plate/00", "construction/00-00")
        ]

    assert [write(seed) for seed in range(20)] == [write(seed) for seed in range(20)]
    assert len({text for seed in range(60) for text in write(seed)}) > 1


def test_a_family_that_is_no_rl_stage_is_refused(samples):
    with pytest.raises(ValueError, match="the embedded policy has a part in belongs_together"):
        script(turn(samples["plate/00"], "crop", 0))
