"""JSON schemas that are sent with a question: their text is in the ledger's keys, a class's docstring included."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from darkroom.annotation.rounds.pre_annotations import PolicyRecord
from darkroom.pipelines.generation.operation_planning import Decision
from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.verification.judges.judge import YesOrNo
from darkroom.train.rl.judging import judges

PAID_WITH = {
    PolicyRecord: "1315e8001cc6",
    Decision: "f55132a7cc3c",
    YesOrNo: "0ed76d6ef4f8",
    judges._EvidenceGrade: "095d3e8bc98c",
    judges._ShareGrade: "420bdd986b28",
    judges._ThoughtGrades: "445c4b4e78ea",
}
"""Digests of the schemas with which answers were paid for."""


@pytest.mark.parametrize("form", PAID_WITH, ids=lambda form: form.__name__)
def test_an_answer_that_was_paid_for_is_found_again(form: type[BaseModel]) -> None:
    assert digest_bytes(json.dumps(form.model_json_schema()).encode())[:12] == PAID_WITH[form]
