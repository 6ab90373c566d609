"""Practice in a real browser on a real Label Studio: a failed try, a passed one, and the tasks that open then."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from darkroom.annotation.label_studio.forms import CATEGORIES
from darkroom.annotation.quality.annotators import payments
from darkroom.annotation.quality.metrics import measure
from darkroom.annotation.quality.report import render
from darkroom.annotation.rounds.campaign import FILE, Campaign
from darkroom.annotation.rounds.journal import Journal
from darkroom.annotation.rounds.practice import EXAMPLE, exchange_practice, practice_results
from tests.e2e.annotators import SMALL, boxes, choice, http_client, text
from tests.e2e.campaigning import AUTHOR, CHECKER, EXPERT, FOURTH, PASSWORD, THIRD, Campaigning, campaigning
from tests.e2e.labelling import SHOWN, Labelling
from tests.e2e.visitor import Point, Visitor, visitor

SIZE = (1400, 900)
ROWS = {row["question"]: row for row in map(json.loads, EXAMPLE.read_text().splitlines())}
TITLES = {category.name: category.title for category in CATEGORIES}
SHOWS = "document.readyState === 'complete' && document.querySelector('#picture img')?.naturalWidth > 0"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[Campaigning]:
    with campaigning(tmp_path_factory.mktemp("annotation") / "home", root, (1, 2, 5, 11)) as made:
        yield made


@pytest.fixture(scope="module")
def begun(campaign: Campaigning) -> dict[str, Any]:
    """The task of somebody who was at work before the campaign asked for practice, which it does from here on."""
    with client(campaign, FOURTH) as fourth:
        task: dict[str, Any] = next_task(fourth, campaign).json()
    path = campaign.workspace.annotation / FILE
    path.write_text(path.read_text() + "practice: example\n")
    exchange(campaign)
    return task


def exchange(campaign: Campaigning) -> None:
    folder = campaign.workspace.annotation
    with Journal(folder) as journal:
        exchange_practice(campaign.workspace, Campaign.load(folder), journal, campaign.studio)


def client(campaign: Campaigning, email: str) -> Any:
    [account] = [account for account in campaign.studio.accounts() if account["email"] == email]
    return http_client(campaign.studio.url, account["token"])


def next_task(person: Any, campaign: Campaigning) -> Any:
    path = {"id": "next_task", "project": campaign.project("annotate")}
    return person.post("/api/dm/actions", params=path, json={})


def test_whoever_has_begun_a_task_keeps_it_and_gets_no_other_one(campaign: Campaigning, begun: dict[str, Any]) -> None:
    with client(campaign, FOURTH) as fourth:
        assert fourth.get(f"/api/tasks/{begun['id']}/").json()["data"] == begun["data"]
        gate = begun["data"]["gate"]
        record = [*boxes((gate["width"], gate["height"]), SMALL), choice("category", "ocr")]
        record += [text("question", "What does it say?"), text("answer", "No. 7")]
        assert fourth.post(f"/api/tasks/{begun['id']}/annotations/", json={"result": record}).status_code == 201
        refused = next_task(fourth, campaign)
        assert (refused.status_code, "Practise first" in refused.text) == (403, True)


@pytest.mark.usefixtures("begun")
def test_the_server_gives_no_task_of_any_round_before_practice(campaign: Campaigning) -> None:
    numbers = {round: campaign.project(round) for round in ("annotate", "cross_check", "rework", "accept")}
    for email, is_open in ((CHECKER, False), (EXPERT, True)):
        with client(campaign, email) as person:
            for round, number in numbers.items():
                opened = person.get(f"/api/projects/{number}/").status_code == 200
                assert opened == (is_open and round == "accept"), (email, round)
            assert bool(person.get("/api/projects/").json()["results"]) == is_open
            page = person.get("/darkroom/practice")
            assert (page.status_code, page.headers.get("location")) == ((302, "/projects/") if is_open else (200, None))


@pytest.mark.usefixtures("begun")
def test_what_is_served_of_a_step_does_not_hold_its_solution(campaign: Campaigning) -> None:
    """Before an answer neither it nor the record; before a verdict no word on what is right."""
    with client(campaign, THIRD) as third:
        page = third.get("/darkroom/practice").text
        row = ROWS[shown_question(page)]
        assert not re.search(rf"\b{re.escape(row['answer'])}\b", page.partition("<main>")[2].partition("<script")[0])
        assert not re.search(r'data-box="|The record|right answer', page)
        sent = {"step": "1.0", "answer": "of my own", "boxes": [{"x": 1, "y": 1, "width": 9, "height": 9}]}
        third.post("/darkroom/practice", json=sent)
        page = third.get("/darkroom/practice").text
        assert "of my own" in page
        assert not re.search(r'class="box right"|right answer|wrong|has an error', page)
        third.post("/darkroom/practice", json=sent | {"answer": "of another mind"})
        assert "of another mind" not in third.get("/darkroom/practice").text, "what was given first stays"
        strange = (5, "x", [1], {"step": "1.1", "verdict": ["accept"]}, {"step": 1})
        assert {third.post("/darkroom/practice", json=sent).status_code for sent in strange} <= {200, 400, 403}
        third.post("/darkroom/practice", json={"step": "1.1", "verdict": "accept"})
        page = third.get("/darkroom/practice").text
        assert f"The right answer: <b>{row['answer']}</b>" in page
        assert "Your answer is wrong." in page


@pytest.mark.usefixtures("begun")
@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({"answer": ""}, "Answer the question first."),
        ({"answer": "x" * 1001}, "at most 1,000 are kept"),
        ({"answer": 7}, "Answer the question first."),
        ({"answer": "7", "boxes": []}, "Draw at least one box"),
        ({"answer": "7", "boxes": [{"x": 1, "y": 1, "width": 1e9, "height": 1}]}, "Draw at least one box"),
        ({"answer": "7", "boxes": "all"}, "Draw at least one box"),
    ],
)
def test_what_is_no_answer_is_refused(campaign: Campaigning, sent: dict[str, Any], said: str) -> None:
    with client(campaign, AUTHOR) as author:
        author.get("/darkroom/practice")
        refused = author.post("/darkroom/practice", json={"step": "1.0", **sent})
        assert (refused.status_code, said in refused.json()["detail"]) == (400, True)
        assert author.post("/darkroom/practice", json=["1.0"]).status_code == 403
        assert author.post("/darkroom/practice", json={"step": "1.0", "number": 1}).status_code == 403


def shown_question(page: str) -> str:
    return re.search(r'<p class="note">(.*?)</p>', page)[1]  # type: ignore[index]


@pytest.mark.usefixtures("begun")
def test_a_try_fails_another_one_passes_and_the_tasks_open(campaign: Campaigning, port: int) -> None:
    with visitor(port, SIZE) as made:
        page = Labelling(made, campaign.studio.url)
        page.log_in(CHECKER, PASSWORD, f"/projects/{campaign.project('annotate')}/data?labeling=1")
        made.until_said("Practice: image 1 of 5")
        made.open(f"{page.url}/projects/")
        made.until_said("Practise first: five images")
        assert "Next task" not in made.text()
        made.click("a.next")
        first = [work(made, wrong=number < 2) for number in range(5)]
        assert "3 of 5 right; four are needed." in made.text()
        assert "Box every target, tightly." in made.text()
        made.click("a[href^='/darkroom/practice?after=']")
        made.until_said("Practice: image 1 of 5")
        second = [work(made, wrong=number == 4) for number in range(5)]
        assert len({*first, *second}) == 10, "other images"
        assert "4 of 5 right: your tasks are open." in made.text()
        made.click("a[href='/projects/']")
        made.until_said("Next task")
        page.open_task(campaign.project("annotate"))
        made.until(SHOWN)


def work(made: Visitor, *, wrong: bool) -> str:
    """One image, answered, boxed and judged, right or wrong; gives its question and goes on, but from the last."""
    made.until(SHOWS)
    row = ROWS[made.run("document.querySelector('.note').innerText")]
    made.type("input[name=answer]", "no idea" if wrong else row["answer"])
    made.click("#larger")
    draw(made, row["boxes"][0])
    keep_over_a_reload(made)
    made.click("#own .key")
    made.until("document.getElementById('verdict') && " + SHOWS)
    said = made.text()
    counted = f"Count: {row['count']}" in said if "count" in row else "Count:" not in said
    record = (f"Answer: {row['answer']}\n" in said, f"Category: {TITLES[row['category']]}" in said, counted)
    theirs = [int(side) for side in made.run("document.querySelector('.theirs[data-box]').dataset.box").split()]
    is_right = all(record) and theirs == row["boxes"][0]
    made.click(f"#verdict button[value={'accept' if is_right else 'reject'}]")
    made.until_said("Not quite" if wrong else "All right")
    said = made.text()
    assert f"The right answer: {row['answer']}" in said
    assert ("Your answer is wrong." in said) == wrong
    assert not wrong or "Answer in a word, a number or a short phrase." in said, "the guide's step"
    assert "Your box fits." in said
    if "Next image" in said:
        made.click("a.key")
        made.until("document.getElementById('own')")
    return str(row["question"])


def answer_beside_the_target(visitor: Visitor) -> None:
    """Give a right answer with a box beside the target and a verdict: the page says what was right."""
    visitor.until(SHOWS)
    row = ROWS[visitor.run("document.querySelector('.note').innerText")]
    visitor.type("input[name=answer]", row["answer"])
    x1, y1, x2, y2 = row["boxes"][0]
    draw(visitor, [x1 - (x2 - x1) // 2, y1 - (y2 - y1), x2, y2])
    visitor.click("#own .key")
    visitor.until("document.getElementById('verdict') && " + SHOWS)
    visitor.click("#verdict button[value=reject]")
    visitor.until_said("The right answer")


def draw(made: Visitor, corners: list[int]) -> None:
    """With the mouse, after the target was scrolled to."""
    box = json.dumps(corners)
    start, end = made.run(f"""(() => {{
        const frame = document.getElementById('frame'), picture = document.getElementById('picture');
        const size = document.body.dataset.size.split(' ').map(Number), c = {box};
        const scale = picture.clientWidth / size[0];
        frame.scrollTo(c[0] * scale - 200, c[1] * scale - 200);
        const whole = picture.getBoundingClientRect();
        return [[whole.x + c[0] * scale, whole.y + c[1] * scale], [whole.x + c[2] * scale, whole.y + c[3] * scale]];
    }})()""")
    made.drag([Point(*start), Point((start[0] + end[0]) / 2, (start[1] + end[1]) / 2), Point(*end)])
    made.until("document.querySelectorAll('#picture .box').length === 1")


def keep_over_a_reload(made: Visitor) -> None:
    answer = made.run("document.querySelector('input').value")
    made.run("void location.reload()")
    made.until(f"{SHOWS} && document.querySelector('input').value === {json.dumps(answer)}")
    made.until("document.querySelectorAll('#picture .box').length === 1")


@pytest.mark.usefixtures("begun")
def test_practice_is_no_record_no_payment_no_planted_error_and_no_agreement(campaign: Campaigning) -> None:
    """What people practised in the tests above is in the list of results and nowhere else."""
    exchange(campaign)
    states = [record.state for record in campaign.sync()]
    with Journal(campaign.workspace.annotation) as journal:
        people, tries = list(journal.people().values()), journal.practice()
        versions = [raw["completed_by"] for _, raw, _ in journal.versions_after(0)]
    rules = Campaign.load(campaign.workspace.annotation)
    results = {result.email: result for result in practice_results(tries, people, rules)}
    assert [str(results[email]) for email in (CHECKER, THIRD, AUTHOR)] == [
        "passed: 4 of 5, try 2",
        "practises: 0 of 1, try 1",
        "practises: 0 of 0, try 1",
    ]
    assert results[CHECKER].hours > 0
    [fourth] = [person.person_id for person in people if person.email == FOURTH]
    assert versions == [fourth], "one record, written before"
    assert [event.person for state in states for event in state.history] == [FOURTH]
    assert [(row["account"], row["submissions"]) for row in payments(states, people)] == [(FOURTH, 1)]
    quality = measure(states, people=people, campaign=rules)
    assert quality.planted_errors == {}
    assert (quality.panels, quality.verdicts, quality.blind.of) == ((), None, 0)
    assert sum(row.n_submissions for row in quality.people) == 1
    page = render(quality, practice=list(results.values()))
    assert "passed: 4 of 5, try 2" in page


@pytest.mark.usefixtures("begun")
def test_the_campaign_that_asks_no_longer_opens_its_tasks(campaign: Campaigning) -> None:
    path = campaign.workspace.annotation / FILE
    path.write_text(path.read_text().replace("practice: example\n", ""))
    exchange(campaign)
    with client(campaign, THIRD) as third:
        assert next_task(third, campaign).status_code == 200
        assert third.get("/darkroom/practice?after=1.2").headers["location"] == "/projects/"
