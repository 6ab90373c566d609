"""The limits of every RL stage, of one sample without a shard: votes, bands, labels, totals."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from darkroom.pipelines.generation.stage import SAMPLES, Rejection, Shard
from darkroom.pipelines.models.policies import Completion
from darkroom.pipelines.records import (
    Check,
    CheckedLabel,
    Grader,
    ImageRef,
    PassRate,
    Reject,
    RLCandidate,
    Sample,
    SuitabilityLabel,
    SuitabilityReview,
    SuitabilityVotes,
    ToolNecessity,
    Truth,
    TruthBox,
    Usage,
    Verification,
    VideoRef,
    Votes,
    to_row,
)
from darkroom.pipelines.records.reject_reasons import Reason, RowError, reject
from darkroom.pipelines.rl import candidates, labels, necessity, pass_rates, suitability
from darkroom.pipelines.rl.candidates import Candidates, asks_visual_search, ballot_of, graded, seed_of, turn_of
from darkroom.pipelines.rl.facts import STAGES, all_votes, grader_counts, polled, shards_with, stage_facts
from darkroom.pipelines.rl.labels import CheckedLabels
from darkroom.pipelines.rl.pass_rates import PassRates
from darkroom.pipelines.rl.rows import annotated_row, difficulty_of, public_rows, tables_of
from darkroom.pipelines.rl.suitability import Suitability, SuitabilityLabels, labels_of, reviews_key
from darkroom.pipelines.storage.workspace import Workspace
from tests.pipelines.scripted import Scripted

IMAGE = ImageRef("i" * 64, 1000, 100, "RGB", "PNG")
SAMPLE = Sample("s", "signs", "7", "CC0-1.0", (IMAGE,), "What does the sign say?", (), "STOP", Truth(), "ocr")
CANDIDATE = RLCandidate("s", Grader("text"), (), Usage())
YES, NO = '{"reason": "so it is", "verdict": true}', '{"reason": "not at all", "verdict": false}'


def saying(*texts: str, name: str = "model") -> Scripted:
    """One text after the other, by the order of seeds."""
    return Scripted(lambda turn: texts[(turn.seed - turn.task.seed) % len(texts)], name=name)


def right(n: int, of: int) -> list[str]:
    return ["<answer>STOP</answer>"] * n + ["<answer>no</answer>"] * (of - n)


def reason(outcome: object) -> Reason | None:
    return outcome.error.reason if isinstance(outcome, Rejection) else None


@pytest.mark.parametrize(
    ("n_right", "fields", "expected"),
    [
        (8, {}, Reason.TOO_EASY),
        (7, {}, None),
        (0, {}, None),
        (0, {"drop_unsolved": True}, Reason.NEVER_SOLVED),
        (1, {"drop_unsolved": True}, None),
        (4, {"max_rate": 0.5}, None),
        (5, {"max_rate": 0.5}, Reason.TOO_EASY),
        (9, {"n_answers": 10}, None),
        (10, {"n_answers": 10}, Reason.TOO_EASY),
        (8, {"max_rate": 1.0}, None),
    ],
)
def test_a_pass_rate_is_too_easy_above_nine_in_ten(n_right, fields, expected):
    stage = PassRates(student=saying(*right(n_right, fields.get("n_answers", 8))), **fields)
    outcome = asyncio.run(stage.measure(SAMPLE, CANDIDATE))
    assert reason(outcome) is expected
    row = outcome.record if isinstance(outcome, Rejection) else outcome
    assert (row.votes.n_yes, row.votes.n, row.never_solved) == (n_right, fields.get("n_answers", 8), n_right == 0)


def test_a_rejected_rate_says_the_share_that_teaches_nothing():
    too_easy = asyncio.run(PassRates(student=saying(*right(8, 8))).measure(SAMPLE, CANDIDATE))
    assert too_easy.error.evidence == "8 of 8 answers of model are right; above 90% a row teaches nothing"
    stage = PassRates(student=saying("no idea"), drop_unsolved=True)
    unsolved = asyncio.run(stage.measure(SAMPLE, CANDIDATE))
    assert unsolved.error.evidence == "0 of 8 answers of model are right"


def word(verdict: str) -> Verification:
    return Verification("s", verdict, "it says GO", "eve@example.com", "2026-01-01T00:00:00+00:00", 9.0)


@pytest.mark.parametrize(
    ("n_right", "verdict", "expected"),
    [
        (4, "", None),
        (3, "", None),
        (2, "", Reason.LABEL_DISPUTED),
        (0, "", Reason.LABEL_DISPUTED),
        (0, "match", None),
        (4, "mismatch", Reason.WRONG_LABEL),
        (4, "unsure", None),
        (2, "unsure", Reason.LABEL_DISPUTED),
    ],
)
def test_a_label_stands_by_most_answers_or_a_persons_word(n_right, verdict, expected):
    said = {"s": word(verdict)} if verdict else {"other": word("mismatch")}
    stage = CheckedLabels(judge=saying(*right(n_right, 4)), said=said)
    outcome = asyncio.run(stage.measure(SAMPLE, CANDIDATE))
    assert reason(outcome) is expected
    row = outcome.record if isinstance(outcome, Rejection) else outcome
    assert row.verified_by == ("eve@example.com" if verdict else "")


def test_a_disputed_label_tells_each_answer_once():
    judge = saying("<answer>GO</answer>", "<answer>NO</answer>", "<answer>GO</answer>", "I cannot tell.")
    outcome = asyncio.run(CheckedLabels(judge=judge).measure(SAMPLE, CANDIDATE))
    assert outcome.error.evidence == "the label is 'STOP'; 0 of 4 answers are: GO, NO, I cannot tell."
    wrong = asyncio.run(CheckedLabels(judge=judge, said={"s": word("mismatch")}).measure(SAMPLE, CANDIDATE))
    assert wrong.error.evidence.endswith("image, question and answer do not match: it says GO")


def test_settings_of_the_stages_name_what_decides_rows():
    judge = saying("")
    said = {"b": replace(word("match"), sample_id="b"), "a": replace(word("unsure"), sample_id="a")}
    verdicts = [["a", "unsure", "eve@example.com"], ["b", "match", "eve@example.com"]]
    settings = CheckedLabels(judge=judge, said=said).settings
    assert settings == {"n_answers": 4, "stop_early": False, "verifications": verdicts}
    of_rates = {"n_answers": 8, "max_rate": 0.9, "drop_unsolved": False, "stop_early": False}
    assert PassRates(student=judge).settings == of_rates
    assert Suitability(judge=judge).settings == {"n_votes": 8, "stop_early": False}
    assert SuitabilityLabels().settings == {"tie": "no"}
    assert Candidates(judge=None).settings == {"n_votes": 1, "version": 1, "benchmarks": ""}


@pytest.mark.parametrize(
    ("texts", "n_asked", "failed"),
    [
        ((YES,), 2, None),
        ((NO,), 1, "belongs_together"),
        ((YES, NO), 2, "belongs_together"),
        ((YES, YES, NO), 6, None),
        ((YES, NO, NO), 3, "belongs_together"),
    ],
)
def test_a_candidate_needs_most_votes_on_both_questions(texts, n_asked, failed):
    judge = saying(*texts)
    stage = Candidates(judge=judge, n_votes=len(texts))
    outcome = asyncio.run(stage.measure(SAMPLE, SAMPLE))
    assert len(judge.turns) == n_asked
    if failed is None:
        assert [check.name for check in outcome.checks] == ["belongs_together", "self_contained"]
        assert all(check.passed for check in outcome.checks)
        assert outcome.usage.calls == n_asked
    else:
        assert (outcome.error.reason, outcome.check) == (Reason.CHECK_FAILED, failed)
        assert isinstance(outcome.record.checks[0], Check)
        assert outcome.record.usage.calls == n_asked


def test_a_no_to_the_second_question_rejects_a_candidate():
    judge = Scripted(lambda turn: YES if turn.task.family == "belongs_together" else NO)
    outcome = asyncio.run(Candidates(judge=judge).measure(SAMPLE, SAMPLE))
    assert (outcome.check, [check.passed for check in outcome.record.checks]) == ("self_contained", [True, False])


@pytest.mark.parametrize("shown", ["a text", "a video", "no judge"])
def test_a_candidate_that_no_judge_sees_is_asked_about_by_none(shown):
    judge = saying(NO)
    film = VideoRef("v" * 64, "mp4", 10, 10, 9, 5.0, "", "")
    asked = replace(SAMPLE, images=()) if shown == "a text" else SAMPLE
    asked = replace(SAMPLE, videos=(film,)) if shown == "a video" else asked
    outcome = asyncio.run(Candidates(judge=None if shown == "no judge" else judge).measure(asked, asked))
    assert isinstance(outcome, RLCandidate)
    assert (outcome.sample_id, outcome.checks, outcome.usage, judge.turns) == ("s", (), Usage(), [])


def test_what_the_screening_found_is_raised_before_anybody_is_asked():
    error = RowError(Reason.NEAR_DUPLICATE, "of t")
    for errors, is_raised in (({"s": error}, True), ({"other": error}, False)):
        judge = saying(YES)
        stage = Candidates(judge=judge, errors=lambda errors=errors: errors)
        if is_raised:
            with pytest.raises(RowError, match="of t"):
                asyncio.run(stage.measure(SAMPLE, SAMPLE))
        else:
            asyncio.run(stage.measure(SAMPLE, SAMPLE))
        assert bool(judge.turns) is not is_raised


def test_a_turn_is_of_the_stage_and_the_sample_alone():
    turn, other = turn_of(SAMPLE, "relabel"), turn_of(SAMPLE, "pass_rate")
    assert turn.seed == turn.task.seed == seed_of("relabel", "s") != other.seed
    assert turn.task.trajectory_id != other.task.trajectory_id != turn_of(replace(SAMPLE, sample_id="t"), "pass_rate")
    assert (turn.schema, turn_of(SAMPLE, "relabel", schema={"a": 1}).schema) == (None, {"a": 1})
    assert (turn.task.sample, turn.task.images) == (SAMPLE, (IMAGE,))


def test_an_answer_is_read_as_a_ballot_with_its_excerpt():
    read = graded(SAMPLE, Grader("text"), None)

    def ballot(text: str, *, finished: bool = True):
        vote = asyncio.run(read(Completion(text, finished=finished)))
        return vote.says, vote.reason

    assert ballot("<answer>STOP</answer>") == (True, "STOP")
    assert ballot("<answer>GO</answer>") == (False, "GO")
    assert ballot("<answer>STOP</answer>", finished=False) == (None, "<answer>STOP</answer>")
    assert ballot("no idea " + "x" * 200) == (None, "x" * 200)
    vote = asyncio.run(ballot_of("y" * 201, SAMPLE, Grader("text"), None))
    assert (vote.says, vote.reason) == (False, "y" * 200)


def test_free_text_is_graded_by_a_judge_and_other_text_by_its_rule():
    judge = saying('{"reason": "the same", "verdict": true}')
    asked = replace(SAMPLE, answer="because it is a Sunday")
    by_judge = asyncio.run(ballot_of("it is Sunday today", asked, Grader("judged"), judge))
    assert (by_judge.says, by_judge.usage.calls, len(judge.turns)) == (True, 1, 1)
    for grader, policy in ((Grader("judged"), None), (Grader("text"), judge)):
        vote = asyncio.run(ballot_of("it is Sunday today", asked, grader, policy))
        assert (vote.says, vote.usage) == (False, Usage())
    assert len(judge.turns) == 1


@pytest.mark.parametrize(
    ("areas", "expected"), [([5000], True), ([5050], False), ([9000, 5000], True), ([5050, 9000], False), ([], None)]
)
def test_visual_search_is_for_a_twentieth_of_the_image_at_most(areas, expected):
    boxes = tuple(TruthBox("x", 0, 0, area // 50, 50) for area in areas)
    assert asks_visual_search(replace(SAMPLE, truth=Truth(boxes=boxes))) is expected


def test_visual_search_looks_at_the_image_of_each_target():
    large = replace(IMAGE, width=4000, height=4000)
    shown = replace(SAMPLE, images=(large, IMAGE))
    for image, expected in ((0, True), (1, False), (2, "stated")):
        boxes = (TruthBox("x", 0, 0, 400, 100, image=image),)
        assert asks_visual_search(replace(shown, truth=Truth(boxes=boxes)), "stated") == expected


def votes(*ballots: bool | None, judge: str = "j", n_wanted: int | None = None) -> Votes:
    return Votes(judge, ballots, n_wanted=len(ballots) if n_wanted is None else n_wanted)


@pytest.mark.parametrize(
    ("n_yes", "n", "difficulty"),
    [(1, 8, "hard"), (3, 8, "hard"), (4, 8, "medium"), (5, 8, "medium"), (6, 8, "easy"), (8, 8, "easy")],
)
def test_difficulty_is_by_the_share_of_right_answers(n_yes, n, difficulty):
    ballots = votes(*[True] * n_yes, *[False] * (n - n_yes))
    assert difficulty_of(PassRate("s", ballots, never_solved=False)) == difficulty
    assert difficulty_of(PassRate("s", ballots, never_solved=True)) == "unsolved"
    assert difficulty_of(None) == "unknown"


def test_a_row_of_people_has_no_rate():
    row = annotated_row(replace(SAMPLE, answer="a heron"))
    assert (row.origin, row.difficulty, row.pass_rate, row.grader.kind) == ("annotated", "unknown", None, "text")


@pytest.mark.parametrize(
    ("ballots", "tie", "suitable"),
    [
        ((True, True, False), "no", True),
        ((True, False, False), "yes", False),
        ((True, False), "no", False),
        ((True, False), "yes", True),
        ((True, False), "reject", None),
        ((True, True, False), "reject", True),
    ],
)
def test_a_suitability_is_the_majority_and_a_tie_what_the_setting_says(ballots, tie, suitable):
    of = SuitabilityVotes("s", votes(*ballots, None))
    outcome = asyncio.run(SuitabilityLabels(tie=tie).measure(SAMPLE, of))
    if suitable is None:
        assert (reason(outcome), outcome.error.evidence) == (Reason.TIED, "1 say yes and 1 say no")
    else:
        assert outcome.suitable is suitable
        assert (outcome.n_yes, outcome.n_no, outcome.n_invalid) == (ballots.count(True), ballots.count(False), 1)


@pytest.mark.parametrize(("texts", "expected"), [(("?",), Reason.NO_VOTE), (("?", YES), None), ((NO,), None)])
def test_a_row_without_any_vote_has_no_suitability(texts, expected):
    outcome = asyncio.run(Suitability(judge=saying(*texts)).measure(SAMPLE, CANDIDATE))
    assert reason(outcome) is expected
    assert (outcome.record if expected else outcome).votes.n == 8


def test_votes_are_added_up():
    rows = [
        votes(True, True, False, judge="b", n_wanted=8),
        votes(True, False, None, judge="a"),
        votes(None, judge="b", n_wanted=4),
        votes(True, True, judge="b"),
    ]
    total = polled(rows)
    assert (total.n_rows, total.n_ballots, total.n_invalid, total.n_saved, total.n_tied) == (4, 9, 2, 8, 2)
    assert total.mean_agreement == pytest.approx((2 / 3 + 1 / 2 + 0 + 1) / 4)
    assert (total.judges, list(total.by_yes.items()), total.n_most) == ({"a", "b"}, [(0, 1), (1, 1), (2, 2)], 8)
    nothing = polled([])
    assert (nothing.n_rows, nothing.mean_agreement, nothing.by_yes, nothing.n_most) == (0, 0.0, {}, 0)


def write(
    workspace: Workspace, partition: str, asset: str, kind: type, rows: list, rejects=(), **facts: object
) -> None:
    known = {"n_in": 0, "n_out": len(rows), "usage": to_row(Usage()), "reasons": {}, "n_retryable": 0, **facts}
    key = Shard(workspace, partition).key(asset)
    workspace.tables.write(key, kind, rows, list(rejects), inputs="", facts=known)


def test_stages_are_totals_over_the_shards_that_have_them(workspace: Workspace):
    notes = {"models": {"judge": "a"}, "settings": {"n": 1, "same": [2]}}
    others = {"models": {"judge": "b", "student": "a"}, "settings": {"n": 2, "same": [2], "more": 3}}
    cost = to_row(Usage(calls=2, cost_usd=0.5))
    for partition, note in (("p0", notes), ("p1", others), ("p2", {})):
        more = {"notes": note} if note else {}
        write(workspace, partition, candidates.ASSET, RLCandidate, [CANDIDATE], n_in=3, usage=cost, **more)
    numbered = replace(CANDIDATE, grader=Grader("number"))
    write(workspace, "p3", candidates.ASSET, RLCandidate, [CANDIDATE, numbered], n_in=1)
    parts = ["p0", "p1", "none"]
    assert [shard.partition for shard in shards_with(workspace, parts, candidates.ASSET)] == ["p0", "p1"]
    (facts,) = stage_facts(workspace, parts)
    assert (facts.step.name, facts.n_in, facts.usage.calls, facts.models) == (candidates.ASSET, 6, 4, ("a", "b"))
    assert facts.settings == {"n": "1 or 2", "same": [2], "more": "None or 3"}
    assert stage_facts(workspace, ["p2"])[0].settings == {}
    assert stage_facts(workspace, []) == []
    assert grader_counts(workspace, ["p0", "p3"]) == {"text": 2, "number": 1}
    assert STAGES[:3] == (candidates.ASSET, labels.ASSET, pass_rates.ASSET)


def test_votes_of_rejected_rows_are_among_all_votes(workspace: Workspace):
    kept, rejected = votes(True), votes(False, judge="r")
    rows = [json.dumps(row) for row in ({"votes": to_row(rejected)}, {"other": 1}, [1])]
    told = {"stage": pass_rates.ASSET, "reason": Reason.TOO_EASY, "disposition": "quarantined", "evidence": "x"}
    rejects = [Reject(**told, row=row) for row in rows]
    write(workspace, "p0", pass_rates.ASSET, PassRate, [PassRate("s", kept, False)], rejects)
    assert list(all_votes(workspace, ["p0", "p1"], pass_rates.ASSET)) == [kept, rejected]


def test_people_decide_a_problem_unless_they_are_divided(workspace: Workspace):
    said = [
        ("a", "yes"),
        ("a", "yes"),
        ("a", "no"),
        ("b", "yes"),
        ("b", "no"),
        ("c", "unsure"),
        ("d", "no"),
        ("e", "yes"),
    ]
    reviews = [
        SuitabilityReview(sample, verdict, "", "eve", "2026-01-01T00:00:00+00:00", 1.0) for sample, verdict in said
    ]
    for source, part in (("x", reviews[:3]), ("y", reviews[3:])):
        workspace.tables.write(reviews_key(source), SuitabilityReview, part, [], inputs="", facts={})
    assert labels_of(workspace.tables, ["x", "y", "none"]) == {"a": True, "d": False, "e": True}
    assert labels_of(workspace.tables, ["x"]) == {"a": True}
    assert suitability.VOTES != suitability.LABELS


def test_public_rows_are_the_candidates_that_no_filter_rejected_with_what_is_known_of_each(workspace: Workspace):
    samples = [replace(SAMPLE, sample_id=name) for name in "abcde"]
    rate = PassRate("a", votes(True, False, False, False), never_solved=False)
    prior = ToolNecessity("a", votes(True), votes(False))

    def rejected(name: str) -> list[Reject]:
        return [reject(Reason.TOO_EASY, "", stage="", row={}, sample_id=name)]

    write(workspace, "p", "/".join(SAMPLES), Sample, samples)
    write(workspace, "p", candidates.ASSET, RLCandidate, [replace(CANDIDATE, sample_id=name) for name in "abcde"])
    write(workspace, "p", labels.ASSET, CheckedLabel, [], rejected("b"))
    write(workspace, "p", pass_rates.ASSET, PassRate, [rate], rejected("c"))
    write(workspace, "p", necessity.ASSET, ToolNecessity, [prior], rejected("e"))
    write(workspace, "p", suitability.LABELS, SuitabilityLabel, [], rejected("d"))
    first, last = public_rows(Shard(workspace, "p"))
    assert (first.sample, first.grader, first.origin) == (samples[0], CANDIDATE.grader, "public")
    assert (first.difficulty, first.pass_rate, first.necessity, first.suitability) == ("hard", rate, prior, None)
    assert (last.sample.sample_id, last.difficulty, last.pass_rate) == ("e", "unknown", None), "a prior rejects nothing"
    tables = [key.asset for key in tables_of(Shard(workspace, "p"))]
    assert tables == [SAMPLES, *((asset,) for asset in STAGES)]
