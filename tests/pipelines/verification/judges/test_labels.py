"""Lines of people's verdicts: what counts, what is a typed reject with its line, what several people said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from darkroom.pipelines.verification.judges.calibration import Labels, read_labels
from darkroom.sandbox.errors import UserError

GOOD = {"row": "t1", "family": "direct", "check": "consistency", "verdict": "accept"}


def read(tmp_path: Path, *lines: object) -> Labels:
    path = tmp_path / "labels.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return read_labels(path, "consistency")


def test_a_review_queues_line_is_a_label(tmp_path: Path) -> None:
    found = read(tmp_path, {**GOOD, "verdict": "reject", "reviewer": "mia", "reason": "B, not C", "task": 7})
    (label,) = found.labels
    assert (label.is_good, label.reviewers, label.where) == (False, ("mia",), "labels.jsonl:1")
    assert (label.line.row, label.line.reason) == ("t1", "B, not C")


@pytest.mark.parametrize(
    ("line", "reason", "said"),
    [
        ("{", "malformed_row", "no JSON"),
        ("[" * 100_000, "malformed_row", "no JSON"),
        ("[]", "malformed_row", "one JSON object"),
        ("null", "malformed_row", "one JSON object"),
        ({**GOOD, "verdict": "yes"}, "wrong_type", "verdict"),
        ({**GOOD, "verdict": True}, "wrong_type", "verdict"),
        ({**GOOD, "row": 7}, "wrong_type", "row"),
        ({**GOOD, "row": ""}, "wrong_type", "row"),
        ({"row": "t1"}, "wrong_type", "check"),
        ({**GOOD, "check": ""}, "wrong_type", "check"),
        ({**GOOD, "choices": "A"}, "wrong_type", "choices"),
    ],
)
def test_a_line_that_is_none_is_a_reject_with_its_place(tmp_path: Path, line: object, reason: str, said: str) -> None:
    found = read(tmp_path, GOOD, "", line)
    (rejected,) = found.rejects
    assert (rejected.reason, rejected.source_row, rejected.disposition != "") == (reason, "labels.jsonl:3", True)
    assert said in rejected.evidence
    assert len(found.labels) == 1


def test_lines_about_other_checks_are_counted_and_left_out(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD, {**GOOD, "check": "judge_effective"}, {**GOOD, "check": "judge_effective"})
    assert (len(found.labels), found.n_other, found.n_lines) == (1, 2, 3)


def test_of_several_people_most_decide(tmp_path: Path) -> None:
    said = [
        {**GOOD, "verdict": verdict, "reviewer": name}
        for verdict, name in zip(("reject", "accept", "reject"), "cab", strict=True)
    ]
    (label,) = read(tmp_path, *said).labels
    assert (label.is_good, label.reviewers) == (False, ("a", "b", "c"))


def test_people_who_are_divided_label_nothing(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD, {**GOOD, "verdict": "reject"})
    assert found.labels == []
    assert [(one.reason, one.source_row) for one in found.rejects] == [("disputed", "labels.jsonl:1")]


def test_the_same_row_of_two_families_is_two_rows(tmp_path: Path) -> None:
    assert len(read(tmp_path, GOOD, {**GOOD, "family": "crop", "verdict": "reject"}).labels) == 2


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere"):
        read_labels(tmp_path / "nowhere.jsonl", "consistency")
