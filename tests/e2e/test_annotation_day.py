"""A person's day at the annotation pages in a real browser: on a laptop, on a tablet, after a slip."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from darkroom.annotation._plugin.darkroom_studio.content import to_corners
from darkroom.annotation.rounds.campaign import Campaign
from darkroom.annotation.rounds.image_pool import materialize_pool
from darkroom.pipelines.records.geometry import Box
from tests.e2e.annotators import choice, http_client, settled, text
from tests.e2e.campaigning import AUTHOR, CHECKER, FOURTH, PASSWORD, THIRD, Campaigning, campaigning
from tests.e2e.labelling import REGIONS, SHOWN, Labelling, field
from tests.e2e.visitor import Point, visitor

LAPTOP, TABLET, UPRIGHT = (1280, 720), (1024, 768), (768, 1024)
HUGE = (12_000, 8_500)
SUBMIT = "button[name=submit]"
UPDATE = "([...document.querySelectorAll('.lsf-controls button')].find(node => node.innerText.trim() === 'Update'))"
ZOOM = "Htx.annotationStore.selected.names.get('image').zoomScale"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[Campaigning]:
    with campaigning(tmp_path_factory.mktemp("annotation") / "home", root, (1, 2, 5)) as made:
        yield made


def test_a_record_is_written_on_a_tablet_with_fingers(campaign: Campaigning, port: int) -> None:
    with visitor(port, TABLET) as made:
        page = Labelling(made, campaign.studio.url)
        page.log_in(THIRD, PASSWORD)
        made.resize(TABLET, is_tablet=True)
        page.open_round(campaign.project("annotate"))
        item = campaign.item(page)
        target = campaign.target(item).grown(30)
        draw_by_touch(page, Box(300, 300, 700, 600), campaign)
        made.touch([middle(page, Box(300, 300, 700, 600), campaign)])
        made.until("Htx.annotationStore.selected.selectedRegions.length")
        made.tap("#darkroom-share button")
        made.until(f"!{REGIONS}.length")
        made.tap("(document.querySelector('.dr-side .lsf-label'))")
        draw_by_touch(page, target, campaign)
        at = middle(page, target, campaign)
        made.touch(*([Point(at.x + side * apart, at.y) for apart in range(20, 140, 20)] for side in (-1, 1)))
        made.until(f"{ZOOM} > 2 && {REGIONS}.length === 1")
        made.resize(UPRIGHT, is_tablet=True)
        assert "needs a wider window" not in made.text()
        made.tap("(document.querySelector('input[name=OCR]').closest('label'))")
        page.until_chosen("OCR")
        page.write("Question", "Which number is on the sign?")
        page.write("Answer", "12")
        made.tap(SUBMIT)
        page.until_saved()
        saved = next(json.loads(one.body) for one in made.answers("/annotations?") if one.status == 201)
        value = next(one["value"] for one in saved["result"] if one["type"] == "rectanglelabels")
        drawn = to_corners(value, item.image.width, item.image.height)
        assert max(abs(a - b) for a, b in zip(drawn, target, strict=True)) <= item.image.width / 600


def draw_by_touch(page: Labelling, box: Box, campaign: Campaigning) -> None:
    start, end = page.corners(box, campaign.item(page).image)
    n_before = page.visitor.run(f"{REGIONS}.length")
    page.visitor.touch([start, Point((start.x + end.x) / 2, (start.y + end.y) / 2), end])
    page.visitor.until(f"{REGIONS}.length === {n_before + 1}")


def middle(page: Labelling, box: Box, campaign: Campaigning) -> Point:
    start, end = page.corners(box, campaign.item(page).image)
    return Point((start.x + end.x) / 2, (start.y + end.y) / 2)


def test_a_submission_is_corrected_until_somebody_else_has_begun_to_check_it(campaign: Campaigning, port: int) -> None:
    with visitor(port, LAPTOP) as made:
        author = Labelling(made, campaign.studio.url)
        author.log_in(AUTHOR, PASSWORD)
        made.until_said("Your tasks")
        assert "Correct your last submission" not in made.text()
        author.open_round(campaign.project("annotate"))
        item = campaign.item(author)
        author.draw(campaign.target(item).grown(20), item.image)
        author.choose("OCR")
        author.write("Question", "Which number is on the sign?")
        author.write("Answer", "a slip")
        author.submit()
        author.until_saved()
        campaign.sync()
        correct_last(author, "13")
        update(author)
        made.until_said("Annotation updated successfully")
        with visitor(port, LAPTOP) as second:
            checker = Labelling(second, campaign.studio.url)
            campaign.sync()
            checker.log_in(CHECKER, PASSWORD)
            while True:  # the record of the test before waits, too
                checker.open_task(campaign.project("cross_check"))
                checker.answer_first("13")
                if campaign.item(checker) == item:
                    break
                checker.choose("Accept")
                checker.submit()
                checker.until_saved()
            second.until_said("Answer: 13")
        made.open(f"{author.url}/projects/{campaign.project('annotate')}/data?labeling=1")
        made.until_said("No More Tasks Left")  # somebody else has the last image open
        made.click("([...document.querySelectorAll('button')].find(node => node.innerText === 'Go to Previous Task'))")
        made.until(f"{field('Answer')}?.value === '13'")
        author.write("Answer", "too late")
        update(author)
        made.until_said("Somebody else has begun to work on it: it can no longer be corrected.")
        made.open(f"{author.url}/projects/")
        made.until_said("Log out")
        assert "Correct your last submission" not in made.text()
    state = {record.item: record.state for record in campaign.sync()}[item]
    assert (state.invalid, state.fields and state.fields.answer) == ([], "13")


def reject_over_api(campaign: Campaigning, image: str) -> None:
    """A checker rejects the record of an image, with a comment."""
    for email in (CHECKER, FOURTH):
        account = campaign.studio.add_person(email, role="annotator", password=PASSWORD)
        with http_client(campaign.studio.url, account["token"]) as client:
            query = {"id": "next_task", "project": campaign.project("cross_check")}
            task = client.post("/api/dm/actions", params=query, json={}).json()
            if image not in task.get("data", {}).get("image", ""):
                continue
            own = settled(client, task, "b")["data"]["own_answer"]
            verdict = [text("blind_answer", own), choice("verdict", "reject"), choice("reason", "ambiguous")]
            body = {"result": [*verdict, text("comment", "There are two signs.")], "lead_time": 9.0}
            said = client.post(f"/api/tasks/{task['id']}/annotations/", json=body)
            assert said.status_code == 201, said.text
            return
    raise AssertionError("nobody was given the check")


def test_the_author_replies_to_a_rejection_and_the_next_checker_reads_both(campaign: Campaigning, port: int) -> None:
    item = next(one.item for one in campaign.sync() if one.state.history and one.state.history[0].person == AUTHOR)
    reject_over_api(campaign, item.image.sha256)
    campaign.sync()
    with visitor(port, LAPTOP) as made:
        author = Labelling(made, campaign.studio.url)
        author.log_in(AUTHOR, PASSWORD)
        author.open_round(campaign.project("rework"))
        made.until_said("There are two signs.")
        author.write("Question", "Which number is on the left sign?")
        made.type("[placeholder='Reply to the checker (optional)']", "Only the left one is a sign.")
        author.submit()
        author.until_saved()
    state = {record.item: record.state for record in campaign.sync()}[item]
    assert [(event.round, event.comment) for event in state.history[-2:]] == [
        ("cross_check", "There are two signs."),
        ("rework", "Only the left one is a sign."),
    ]
    with visitor(port, LAPTOP) as made:
        checker = Labelling(made, campaign.studio.url)
        checker.log_in(THIRD, PASSWORD)
        checker.open_round(campaign.project("cross_check"))
        made.until_said("Which number is on the left sign?")
        assert not any("two signs" in one.body or "Only the left" in one.body for one in made.answers("/api/"))
        checker.answer_first("13")
        made.until_said("Rejected before:")
        assert "There are two signs." in made.text()
        made.until_said("Only the left one is a sign.")


def test_an_image_of_102_megapixels_is_worked_on_over_a_slow_line(campaign: Campaigning, port: int) -> None:
    image, target = Image.new("L", HUGE, 120), Box(7000, 3000, 7300, 3200)
    image.paste(255, target)
    image.save(campaign.workspace.annotation / "images" / "huge.png")
    materialize_pool(campaign.workspace, Campaign.load(campaign.workspace.annotation), campaign.workspace.annotation)
    item = next(one.item for one in campaign.sync() if one.item.source_row == "huge.png")
    skip_until(campaign, f"/{item.shown.sha256}")
    with visitor(port, LAPTOP) as made:
        page = Labelling(made, campaign.studio.url)
        page.log_in(FOURTH, PASSWORD)
        made.until_said("Your tasks")
        made.slow_down()
        page.open_task(campaign.project("annotate"))
        n_first, made.n_bytes = made.n_bytes, 0
        page.open_task(campaign.project("annotate"))
        assert n_first > 2_000_000 > 10 * made.n_bytes, "files and the image are in the browser's cache"
        page.draw(target, item.image)
        page.choose("OCR")
        page.write("Question", "Is there a light spot?")
        page.write("Answer", "one")
        page.submit()
        page.until_saved()
    state = {record.item: record.state for record in campaign.sync()}[item]
    assert state.fields is not None
    step = HUGE[0] / 700  # a pixel of the window
    assert max(abs(a - b) for a, b in zip(state.fields.boxes[0], target, strict=True)) <= step


def skip_until(campaign: Campaigning, image: str) -> None:
    """Skips images of the first round over the API until this one is open."""
    account = campaign.studio.add_person(FOURTH, role="annotator", password=PASSWORD)
    with http_client(campaign.studio.url, account["token"]) as client:
        query = {"id": "next_task", "project": campaign.project("annotate")}
        while not (task := client.post("/api/dm/actions", params=query, json={}).json())["data"]["image"].endswith(
            image
        ):
            said = client.post(f"/api/tasks/{task['id']}/annotations/", json={"result": [], "was_cancelled": True})
            assert said.status_code == 201, said.text


def correct_last(page: Labelling, answer: str) -> None:
    """Goes to the last submission from the start page, and writes another answer."""
    page.visitor.open(f"{page.url}/projects/")
    page.visitor.until_said("Correct your last submission")
    page.visitor.click("a[href*='#correct=']")
    page.visitor.until(f"{SHOWN} && {field('Answer')}?.value === 'a slip'")
    page.write("Answer", answer)


def update(page: Labelling) -> None:
    """Leaves the field, without which Label Studio has nothing to update, and presses the button."""
    page.visitor.press("Tab")
    page.visitor.click(UPDATE)
