"""What an audit counts again, without executing anything: votes, rates, difficulty, graders, cards, repetitions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from darkroom.pipelines.inspection.audit.findings import (
    MAX_FINDINGS,
    AuditFinding,
    AuditReport,
    DatasetTotals,
    shortened,
)
from darkroom.pipelines.inspection.audit.row_checks import checks_of, recount, regrade, stated_counts, stored_failures
from darkroom.pipelines.inspection.audit.row_records import NotKnown, UnknownHint
from darkroom.pipelines.verification.checks import EVERY_FAMILY

REF = {"sha256": "ab" * 32, "width": 100, "height": 80, "mode": "RGB", "format": "PNG", "parent": None, "made_by": None}
PROMPT: dict[str, Any] = {
    "sample_id": "s1",
    "question": "How many?",
    "choices": [],
    "answer": "12",
    "grader": {"kind": "number", "tolerance": 0.0, "unit": "", "is_ordered": False},
    "category": "",
    "difficulty": "hard",
    "origin": "public",
    "pass_rate": 0.25,
    "n_right": 2,
    "n_answers": 8,
    "never_solved": False,
    "necessity_prior": 0.5,
    "necessity_model": "student",
    "accuracy_forced": 0.75,
    "accuracy_forbidden": 0.25,
    "suitable": True,
    "suitability_majority": "yes",
    "suitability_yes": 5,
    "suitability_no": 3,
    "boxes": [],
    "source": "a",
    "source_row": "a:1",
    "license": "",
    "images": [{"bytes": b"", "path": ""}],
    "image_refs": [REF],
}


def test_a_prompt_that_is_as_it_says_has_no_finding():
    assert [*recount(PROMPT, None, "rl"), *regrade(PROMPT, None, "rl")] == []


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"pass_rate": 0.3}, "pass_rate 0.3 is not 2 of 8"),
        ({"difficulty": "easy"}, "difficulty easy, never_solved False; 2 of 8 is hard"),
        ({"n_right": 0, "pass_rate": 0.0}, "difficulty hard, never_solved False; 0 of 8 is hard"),
        ({"pass_rate": None}, "difficulty hard without a pass rate"),
        ({"necessity_prior": 0.4}, "necessity_prior 0.4 is not 0.75 less 0.25"),
        ({"suitable": False}, "suitable False, majority yes; the votes are 5 yes, 3 no"),
        ({"suitability_no": 5}, "suitable True, majority yes; the votes are 5 yes, 5 no"),
    ],
)
def test_figures_of_a_prompt_are_counted_from_its_votes(change, found):
    assert [finding.reason for finding in recount(PROMPT | change, None, "rl")] == [found]


def test_a_grader_that_refuses_the_rows_own_answer_is_a_finding():
    findings = list(regrade(PROMPT | {"answer": "twelve of them or so"}, None, "rl"))
    assert {finding.kind for finding in findings} == {"grader"}
    assert any("own answer is refused" in finding.reason for finding in findings)


def test_a_box_outside_of_its_image_is_a_finding():
    boxes = [{"label": "sign", "x1": 0, "y1": 0, "x2": 101, "y2": 5, "image": image} for image in (0, 1)]
    findings = list(regrade(PROMPT | {"boxes": boxes}, None, "rl"))
    assert [finding.kind for finding in findings] == ["boxes", "boxes"]


def test_a_rl_cards_figures_are_counted(tmp_path: Path):
    totals = DatasetTotals(tmp_path, "prompts")
    assert list(totals.row(PROMPT, "train")) == []
    lines = ["2 questions with answers that a grader can tell.", "| difficulty hard | 1 |", "| grader text | 1 |"]
    (tmp_path / "README.md").write_text("\n".join(lines))
    assert [finding.reason for finding in totals.findings()] == [
        "README.md: says '2 questions with', which rows and facts do not give",
        "README.md: says '| grader text | 1 |', which rows and facts do not give",
        "README.md: does not say '| grader number | 1 |', which rows and facts give",
        "README.md: does not say '1 questions with', which rows and facts give",
    ]


def test_the_same_question_about_the_same_image_twice_is_a_repetition(tmp_path: Path):
    totals = DatasetTotals(tmp_path, "prompts")
    rows = [PROMPT, PROMPT | {"sample_id": "s2"}, PROMPT | {"sample_id": "s3", "question": "Which?"}]
    assert [finding.row for row in rows for finding in totals.row(row, "train")] == ["s2"]


def test_first_looks_that_know_too_much_are_a_finding(tmp_path: Path):
    def findings(n_hits: int, n: int) -> list[tuple[str, str]]:
        totals = DatasetTotals(tmp_path, "trajectories")
        for number in range(n):
            look = {"name": "place_could_be_known", "score": 0.75 if number < n_hits else -0.25}
            row = PROMPT | {"trajectory_id": f"t{number}", "question": f"{number}?", "final_thought": "", "rounds": []}
            row["provenance"] = {"policy": "oracle", "model": "oracle"}
            del row["grader"]
            assert list(totals.row(row | {"checks": [look, {"name": "executes", "score": 1.0}]}, "train")) == []
        return [(finding.kind, finding.reason) for finding in totals.findings()]

    reason = "30 of 30 first looks at targets that must be searched for show them; by chance 7.5"
    assert findings(30, 30) == [("known place", reason)]
    assert findings(8, 30) == findings(0, 0) == []


def test_shares_must_be_shares_of_their_votes():
    check = {"name": "judged", "passed": True, "score": 0.75, "n_trials": 4, "detail": ""}
    row = {"trajectory_id": "t", "checks": [check, check | {"n_trials": 3}, check | {"score": 2.0, "passed": False}]}
    assert [finding.reason for finding in stored_failures(row, "crop")] == ["judged says no: "]
    assert [finding.reason for finding in stated_counts(row, "crop")] == [
        "judged: 0.75 is no share of 3 votes",
        "judged: 2.0 is no share of 4 votes",
    ]


def test_a_familys_checks_are_its_recipes_and_others_get_those_of_every_family():
    assert [check.name for check in checks_of("crop")][:2] == ["executes", "shows_an_image"]
    names = {check.name for check in checks_of("somebody's")}
    assert {"hint_stays_hidden", "solution_stays_hidden"} <= names
    assert {check.name for check in EVERY_FAMILY} <= names
    assert not {"crop_contains_target", "executes"} & names  # a row of no family need have no code


def test_what_nobody_knows_is_not_measured_but_has_no_numbers_to_leak():
    hint = UnknownHint()
    assert list(hint.values()) == []
    with pytest.raises(NotKnown, match="hint"):
        hint["angle"]


def test_an_audit_of_a_bad_release_keeps_a_bounded_list():
    report = AuditReport()
    report.add(AuditFinding("replay: text", "release", str(n), "other") for n in range(MAX_FINDINGS + 5))
    assert (report.n_findings, len(report.findings)) == (MAX_FINDINGS + 5, MAX_FINDINGS)
    assert len(shortened("x" * 10**6)) == 300
