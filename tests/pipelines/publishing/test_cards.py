"""What a card says of its rows follows from the rows: who was asked, and that no model was."""

from __future__ import annotations

from collections.abc import Collection
from itertools import product

import pytest
from datasets.info import DatasetInfosDict
from huggingface_hub import DatasetCard

from darkroom.pipelines.publishing.cards import front_matter, licence_parts, render_card
from darkroom.pipelines.publishing.cards.row_facts import RowFacts
from darkroom.pipelines.publishing.features import PROMPTS
from darkroom.pipelines.publishing.rl_dataset import KEY, RlDataset
from darkroom.pipelines.records import (
    Grader,
    PassRate,
    RLRow,
    Sample,
    SuitabilityLabel,
    ToolNecessity,
    Truth,
    Usage,
    Votes,
)
from darkroom.pipelines.records.annotation import SIMULATED, Annotators, measured_on
from darkroom.pipelines.selection.screening import Screening
from darkroom.pipelines.storage.stage_runs import StageReport
from darkroom.pipelines.storage.workspace import Workspace

WHO = (None, "oracle", "qwen3-vl")
COMPOUND = "CC-BY-2.0 AND CC0-1.0"


def sample(license: str = "CC0-1.0", source: str = "demo_rl") -> Sample:
    return Sample("s", source, "1", license, (), "How many?", (), "3", Truth(), "")


def row(student: str | None, forced: str | None, judge: str | None, origin: str) -> RLRow:
    def votes(name: str) -> Votes:
        return Votes(name, (True, False), 2)

    return RLRow(
        sample=sample(source="annotation/ours" if origin == "annotated" else "demo_rl"),
        grader=Grader("number"),
        origin="annotated" if origin == "annotated" else "public",
        difficulty="unknown",
        pass_rate=PassRate("s", votes(student), False) if student else None,
        necessity=ToolNecessity("s", votes(forced), votes(forced)) if forced else None,
        suitability=SuitabilityLabel("s", True, "yes", 1, 0, 0, judge) if judge else None,
    )


def card(workspace: Workspace, rows: list[RLRow], annotators: str, drafts: Collection[str] = ()) -> str:
    names: Annotators = "people" if annotators == "people" else "simulated people"
    dataset = RlDataset(workspace, [], [], Screening(workspace), names, frozenset(drafts))
    facts = dataset.facts()
    for one in rows:
        facts.count(dataset.shipped_row(one, one.sample), "train")
        facts.add(one, one.sample)
    report = StageReport(KEY, len(rows), len(rows), 0, 0, 0, {}, Usage(), reused=False, performed=0)
    return render_card("prompts", dataset.card(facts, report, workspace.local))


@pytest.mark.parametrize(("student", "forced", "judge"), list(product(WHO, WHO, WHO)))
@pytest.mark.parametrize("origin", ["public", "people", "simulated people"])
def test_a_card_says_who_was_asked_and_nothing_else(
    workspace: Workspace, student: str | None, forced: str | None, judge: str | None, origin: str
) -> None:
    said = card(workspace, [row(student, forced, judge, "public" if origin == "public" else "annotated")], origin)
    lines = {line.split(" | ")[0].strip("| "): line for line in said.splitlines() if line.startswith("| ")}
    for what, who in (("pass rate, difficulty", student), ("tool necessity", forced)):
        assert ("measured on qwen3-vl" in lines[what]) == (who == "qwen3-vl")
        assert (SIMULATED in lines[what]) == (who == "oracle")
        assert ("| not measured |" in lines[what]) == (who is None)
    assert ("no model" in lines["visual suitability"]) == (judge == "oracle")
    assert ("simulated people" in said) == (origin == "simulated people")
    assert ("people" in said.replace("simulated people", "")) == (origin == "people")
    assert "qwen3-vl" in said or "qwen3-vl" not in (student, forced, judge)
    for promise in ("worth a rollout", "nearly always solve", "checked by people"):
        assert promise not in said


def test_a_card_says_where_people_corrected_a_draft(workspace: Workspace) -> None:
    rows = [row(None, None, None, "annotated")]
    assert "| question and answer | people, from a model's draft | 1 |" in card(workspace, rows, "people", ["s"])
    assert "from a model's draft" not in card(workspace, rows, "people", ["another"])


def test_the_front_matter_is_as_the_hub_reads_it(workspace: Workspace) -> None:
    data = DatasetCard(card(workspace, [row("oracle", None, None, "public")], "people")).data
    assert (data.license, data.language, data.size_categories) == ("cc0-1.0", ["en"], ["n<1K"])
    assert DatasetInfosDict.from_dataset_card_data(data)["default"].features == PROMPTS


@pytest.mark.parametrize(
    ("licenses", "expected"),
    [
        (["MIT", "MIT"], {"license": "mit"}),
        (["", "unknown"], {"license": "unknown"}),
        ([COMPOUND, "CC0-1.0"], {"license": "other", "license_name": COMPOUND, "license_link": "README.md"}),
        (
            [f"licence-{n}-of-a-long-name" for n in range(9)],
            {"license": "other", "license_name": "several licences", "license_link": "README.md"},
        ),
    ],
)
def test_a_licence_is_the_hubs_or_a_name_of_a_line(licenses: list[str], expected: dict[str, str]) -> None:
    facts = RowFacts()
    for license in licenses:
        facts.columns["licence"][license or "not stated"] += 1
    text = front_matter("prompts", "t", tags=[], languages={}, facts=facts.counted())
    data = DatasetCard(f"---\n{text}\n---\n").data.to_dict()
    assert {name: value for name, value in data.items() if name.startswith("license")} == expected
    assert "language" not in data
    assert max(len(line) for line in text.splitlines()) <= 100


def test_parts_of_compound_licences_are_named_once() -> None:
    assert licence_parts([f"{COMPOUND} AND public-domain", "public-domain", ""]) == [
        "CC-BY-2.0",
        "CC0-1.0",
        "not stated",
        "public-domain",
    ]


@pytest.mark.parametrize(("n_rows", "size"), [(999, "n<1K"), (1000, "1K<n<10K"), (10_000, "10K<n<100K")])
def test_the_size_is_a_category_of_the_hub(n_rows: int, size: str) -> None:
    assert f"- {size}\n" in front_matter("prompts", "t", [], {}, RowFacts(n_rows=n_rows).counted())


def test_whom_figures_were_measured_on() -> None:
    assert measured_on([]) == "not measured"
    assert measured_on(["b", "a", "b"]) == "measured on a, b"
    assert measured_on(["oracle", "a"]) == f"measured on a; {SIMULATED}"
