"""Practice images as a sync gives them to the server, and what became of people's tries."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from darkroom.annotation import AnnotationError
from darkroom.annotation.label_studio.protocol import Person
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.image_pool import write_trial_images
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.practice import EXAMPLE, exchange_practice, practice_results
from darkroom.pipelines.demo.images import DemoSource
from darkroom.pipelines.sources import SourceRow
from darkroom.pipelines.storage.workspace import Workspace

RULES = Campaign(name="c", practice="practice.jsonl", seed=7)
TRY = {"campaign": "c", "number": 1, "n_right": 4, "n": 5, "seconds": 90.0, "at": "2026-05-01T10:00:00+00:00"}
ANN = Person(2, "ann@example.com", "Ann", "annotator")


@dataclass
class Studio:
    """Keeps what it is given."""

    sets: dict[str, Any] = field(default_factory=dict)
    n_given: int = 0
    tries: list[dict[str, Any]] = field(default_factory=list)

    def practice_sets(self) -> dict[str, str]:
        return {name: content["digest"] for name, content in self.sets.items()}

    def set_practice(self, campaign: str, content: dict[str, Any]) -> None:
        self.n_given += 1
        self.sets = {campaign: json.loads(json.dumps(content))} if content else {}

    def accounts(self) -> list[dict[str, Any]]:
        return [{"email": "ann@example.com", "practice": self.tries}]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.from_environment({"DARKROOM_HOME": str(tmp_path)})


def row(number: int, **more: Any) -> dict[str, Any]:
    named = {
        "image": f"{number}.png",
        "question": f"Which number, {number}?",
        "answer": f"4{number}",
        "category": "ocr",
    }
    return {**named, "boxes": [[10, 10, 40, 30]], **more}


def write(workspace: Workspace, *rows: dict[str, Any]) -> None:
    workspace.annotation.mkdir(parents=True, exist_ok=True)
    for number in range(6):
        Image.new("RGB", (400, 300), (number, 0, 0)).save(workspace.annotation / f"{number}.png")
    (workspace.annotation / "practice.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))


def exchange(workspace: Workspace, studio: Studio, campaign: Campaign = RULES) -> None:
    with Journal(workspace.annotation) as journal:
        exchange_practice(workspace, campaign, journal, studio)  # type: ignore[arg-type]


def test_the_server_gets_every_image_with_a_record_that_has_one_error(workspace: Workspace) -> None:
    write(workspace, *map(row, range(6)))
    exchange(workspace, studio := Studio())
    items = studio.sets["c"]["items"]
    assert [item["answer"] for item in items] == [f"4{n}" for n in range(6)]
    for item in items:
        right = {name: item[name] for name in ("answer", "category", "count", "boxes")}
        assert sum(item["planted"][name] != right[name] for name in right) == 1, item
    assert sorted(studio.sets["c"]["passages"]) == ["de", "en", "es", "zh"]


def test_it_is_given_once_and_again_when_the_file_has_changed_and_ends_with_the_rule(workspace: Workspace) -> None:
    write(workspace, *map(row, range(5)))
    studio = Studio()
    for n_rows, n_given in ((5, 1), (5, 1), (6, 2)):
        write(workspace, *map(row, range(n_rows)))
        exchange(workspace, studio)
        assert studio.n_given == n_given
    for _ in range(2):
        exchange(workspace, studio, Campaign(name="c"))
        assert (studio.n_given, studio.sets) == (3, {})


def test_a_campaign_without_the_rule_asks_for_no_practice(workspace: Workspace) -> None:
    exchange(workspace, studio := Studio(), Campaign(name="c"))
    assert studio.n_given == 0


def test_planted_errors_are_other_ones_under_another_seed(workspace: Workspace) -> None:
    write(workspace, *map(row, range(5)))
    given = []
    for seed in (7, 8):
        exchange(workspace, studio := Studio(), RULES.model_copy(update={"seed": seed}))
        given.append([item["planted"] for item in studio.sets["c"]["items"]])
    assert given[0] != given[1]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row(n) for n in range(4)], "expected at least 5 different images; found 4"),
        ([row(0)] * 6, "expected at least 5 different images; found 1"),
        ([row(0, image="none.png")], r"practice.jsonl:1: .*none.png"),
        ([row(0), row(1, boxes=[])], r"practice.jsonl:2: boxes"),
        ([row(0, category="street")], r"practice.jsonl:1: category"),
        ([row(0, boxes=[[10, 10, 500, 30]])], r"practice.jsonl:1: a box is not inside its image of 400x300 pixels"),
        ([row(0, hint="left")], r"practice.jsonl:1: hint"),
    ],
)
def test_a_line_that_is_no_practice_image_is_named(workspace: Workspace, rows: list, said: str) -> None:
    write(workspace, *rows)
    with pytest.raises(AnnotationError, match=said):
        exchange(workspace, Studio())


def test_a_missing_file_is_named(workspace: Workspace) -> None:
    with pytest.raises(AnnotationError, match=r"practice: there is no file .*practice.jsonl; or write `practice: exam"):
        exchange(workspace, Studio())


def test_the_examples_are_true_of_the_images_of_the_demo(workspace: Workspace) -> None:
    """Each question, with its answer and target, is one of the source about the image of that name."""
    write_trial_images(workspace, "trial")
    source, known = DemoSource(), dict[tuple[bytes, str], SourceRow]()
    for each in (each for shard in range(source.n_shards) for each in source.rows(shard)):
        if isinstance(each, SourceRow) and each.images:
            known[each.images[0], each.question] = each
    lines = [json.loads(line) for line in EXAMPLE.read_text().splitlines()]
    assert len({line["image"] for line in lines}) == 20
    for line in lines:
        found = known[(workspace.annotation / "trial" / line["image"]).read_bytes(), line["question"]]
        texts = dict(choice.split(". ", 1) for choice in found.choices)
        assert line["answer"] == texts.get(found.answer, found.answer)
        assert line["boxes"] == [list(found.truth.boxes[0].box)]
        assert (line["category"], line.get("count")) == (found.category.lower(), found.truth.count)


def test_tries_are_kept_in_the_journal_when_the_server_has_lost_them(workspace: Workspace) -> None:
    write(workspace, *map(row, range(5)))
    studio = Studio(tries=[{**TRY, "n_right": 1, "n": 2}])
    exchange(workspace, studio)
    studio.tries = [TRY, {**TRY, "number": 2}]
    exchange(workspace, studio)
    studio.tries = []
    exchange(workspace, studio)
    with Journal(workspace.annotation) as journal:
        assert journal.practice() == {"ann@example.com": [TRY, {**TRY, "number": 2}]}


@pytest.mark.parametrize(
    ("tries", "state"),
    [
        ([], "not begun"),
        ([(1, 2)], "practises: 1 of 2, try 1"),
        ([(3, 5)], "practises: 3 of 5, try 1"),
        ([(4, 5)], "passed: 4 of 5, try 1"),
        ([(3, 5), (2, 5)], "stuck: 2 of 5, try 2"),
        ([(3, 5), (4, 4)], "practises: 4 of 4, try 2"),
        ([(3, 5), (2, 5), (5, 5)], "passed: 5 of 5, try 3"),
    ],
)
def test_what_became_of_a_persons_practice(tries: list[tuple[int, int]], state: str) -> None:
    given = [{**TRY, "number": n, "n_right": right, "n": of} for n, (right, of) in enumerate(tries, 1)]
    others = [{**TRY, "campaign": "another"}]
    [result] = practice_results({"ann@example.com": [*others, *given]}, [ANN], RULES)
    assert (str(result), result.n_tries) == (state, len(tries))
    assert result.hours == pytest.approx(90 * len(tries) / 3600)


def test_experts_and_removed_accounts_do_not_have_to_practise() -> None:
    people = [ANN, Person(3, "eve@example.com", "Eve", "expert"), Person(4, "bo@example.com", "Bo", "checker", False)]
    assert [result.email for result in practice_results({}, people, RULES)] == ["ann@example.com"]
    assert not list(practice_results({}, people, Campaign(name="c")))
