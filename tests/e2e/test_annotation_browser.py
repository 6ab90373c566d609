"""The annotation pages in a real browser on a real Label Studio, worked with mouse and keys: write, check, accept."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from darkroom.annotation._plugin.darkroom_studio.content import to_corners
from darkroom.annotation.label_studio.server import server_of
from darkroom.pipelines.records import PoolImage
from darkroom.pipelines.records.geometry import Box
from tests.e2e.annotators import SMALL, boxes, choice, http_client, settled, text
from tests.e2e.campaigning import (
    AUTHOR,
    AUTHORS_NAME,
    CHECKER,
    EXPERT,
    FOURTH,
    PASSWORD,
    THIRD,
    Campaigning,
    campaigning,
)
from tests.e2e.labelling import REGIONS, SHOWN, Labelling, field, pool_of
from tests.e2e.visitor import PATIENCE_SECONDS, visitor

SIZE = (1400, 900)
KEPT = "Object.keys(localStorage).filter(key => key.startsWith('darkroom:work:'))"
QUESTION, ANSWER = "What does the *small* sign [on the wall] say?", "No. 7_a <b>"


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Iterator[Campaigning]:
    with campaigning(tmp_path_factory.mktemp("annotation") / "home", root, (1, 2, 5, 11)) as made:
        yield made


@pytest.fixture
def page(campaign: Campaigning, port: int) -> Iterator[Labelling]:
    """Somebody who is not logged in."""
    with visitor(port, SIZE) as made:
        yield Labelling(made, campaign.studio.url)


def test_a_wrong_password_lets_nobody_in(page: Labelling) -> None:
    page.log_in(AUTHOR, "another secret 2")
    page.visitor.until_said("don't match")
    assert page.visitor.run("location.pathname").startswith("/user/login")


def test_a_round_for_experts_tells_an_annotator_so(page: Labelling, campaign: Campaigning) -> None:
    page.log_in(CHECKER, PASSWORD, f"/projects/{campaign.project('accept')}/data?labeling=1")
    page.visitor.until_said("This round is not open to you")
    assert "It is for the role expert; your account has the role annotator." in page.visitor.text()
    page.visitor.click("a[href='/projects/']")
    page.visitor.until_said("Streets: check questions")
    assert "accept questions" not in page.visitor.text()
    page.visitor.open(f"{page.url}/user/account/")
    page.visitor.until_said("Legacy Token")
    page.visitor.until_said("First Name")
    shown = page.visitor.text()
    assert [word for word in ("Save", "Upload", "Preferences", "Membership") if word in shown] == []


def test_from_the_login_the_first_task_is_two_clicks_away_and_nothing_else_is_offered(
    page: Labelling, campaign: Campaigning
) -> None:
    page.log_in(THIRD, PASSWORD, "/")
    started = time.monotonic()
    page.visitor.until_said("0 of 4 today")
    titles = ["Streets: write questions", "Streets: check questions", "Streets: rewrite questions"]
    shown = page.visitor.text()
    assert sorted(titles, key=shown.rindex) == titles
    page.visitor.click("a.next")
    page.visitor.until_said("Labeling Instructions")
    page.close("Labeling Instructions")
    page.visitor.until(SHOWN)
    assert page.visitor.n_clicks <= 2
    print(f"from the login to the first task: {time.monotonic() - started:.1f} s, {page.visitor.n_clicks} clicks")
    assert page.visitor.run("location.pathname") == f"/projects/{campaign.project('annotate')}/data"
    page.visitor.until_said("0 of 4 today")
    page.visitor.until_said("Ctrl + Enter")
    for control in ("Settings", "Create", "Import", "Export"):
        assert control not in page.visitor.text().split()
    page.visitor.click(".lsf-breadcrumbs__item:first-child a")
    page.visitor.until_said("Log out")
    assert page.visitor.run("location.pathname") == "/projects/"


def test_an_empty_round_leads_back_to_the_other_tasks(page: Labelling, campaign: Campaigning) -> None:
    page.log_in(EXPERT, PASSWORD)
    page.visitor.until_said("Nothing waits for you at the moment.")
    page.visitor.open(f"{page.url}/projects/{campaign.project('accept')}/data?labeling=1")
    page.visitor.until_said("No More Tasks")
    page.visitor.click("[aria-label='Close modal']")
    page.visitor.click("#darkroom-done")
    page.visitor.until_said("Nothing waits for you at the moment.")
    assert page.visitor.run("location.pathname") == "/projects/"


def test_what_is_closed_says_so_in_a_sentence(page: Labelling) -> None:
    page.log_in(THIRD, PASSWORD)
    page.visitor.until_said("Your tasks")
    page.visitor.open(f"{page.url}/api/webhooks/")
    page.visitor.until_said("Only the admin of this server may do that.")
    assert "status_code" not in page.visitor.text()


def test_the_image_is_shown_pixel_by_pixel_below_the_boxes(page: Labelling, campaign: Campaigning) -> None:
    page.log_in(THIRD, PASSWORD)
    page.open_round(campaign.project("annotate"))
    item = campaign.item(page)
    around = campaign.target(item).grown(150).clipped(item.image.width, item.image.height)
    page.frame()
    seen = page.shown(around, item.image)
    wanted = campaign.image(item).crop(around).resize(seen.size, Image.Resampling.BOX)
    assert np.asarray(wanted, int).std() > 10, "a flat patch proves nothing"
    assert np.corrcoef(np.asarray(seen, int).ravel(), np.asarray(wanted, int).ravel())[0, 1] > 0.9


def test_what_was_begun_is_there_again_after_a_reload(page: Labelling, campaign: Campaigning) -> None:
    page.log_in(THIRD, PASSWORD)
    page.open_round(campaign.project("annotate"))
    item = campaign.item(page)
    page.draw(campaign.target(item).grown(20), item.image)
    page.choose("Attribute")
    page.until_drafted("attribute")
    page.reopen_round(campaign.project("annotate"))
    assert campaign.item(page) == item
    page.visitor.until(f"{REGIONS}.length === 1")
    page.until_chosen("Attribute")


def test_a_record_is_written_checked_and_accepted_by_hand(campaign: Campaigning, port: int) -> None:
    with visitor(port, SIZE) as made:
        item = write(Labelling(made, campaign.studio.url), campaign)
    stands = {one.item: one.state for one in campaign.sync()}[item]
    assert (stands.round, stands.invalid) == ("cross_check", [])
    with visitor(port, SIZE) as made:
        check(Labelling(made, campaign.studio.url), campaign, item)
    assert {one.item: one.state for one in campaign.sync()}[item].round == "accept"
    with visitor(port, SIZE) as made:
        accept(Labelling(made, campaign.studio.url), campaign, item)
    ends = {one.item: one.state for one in campaign.sync()}[item]
    assert (ends.stage, ends.invalid) == ("accepted", [])
    assert ends.fields is not None
    assert (ends.fields.question, ends.fields.answer, ends.fields.category) == (QUESTION, ANSWER, "ocr")
    said = [(event.round, event.person, event.verdict, event.blind_match) for event in ends.history]
    assert said == [
        ("annotate", AUTHOR, "", None),
        ("cross_check", CHECKER, "accept", True),
        ("accept", EXPERT, "accept", None),
    ]


def write(page: Labelling, campaign: Campaigning) -> PoolImage:
    """The author: a box that is too large is refused, a small one is saved as it was drawn."""
    page.log_in(AUTHOR, PASSWORD)
    guide = page.open_round(campaign.project("annotate"))
    assert "Box every target, tightly." in guide
    assert "(annotate)" not in guide
    item = campaign.item(page)
    width, height = item.image.width, item.image.height
    shown = page.visitor.text()
    assert f"This image has {width:,} × {height:,} pixels." in shown
    assert f"{int(0.05 * width * height):,} pixels" in shown
    assert "no box yet" in shown
    large = Box(width // 8, height // 8, width // 2, height // 2)
    page.visitor.press("t")  # as the page says, though the label is in hand already
    page.draw(large, item.image)
    page.visitor.until_said("largest box 14.")
    page.choose("OCR")
    page.write("Question", QUESTION)
    page.write("Answer", ANSWER)
    assert page.visitor.run(f"{field('Question')}.ariaLabel") == "3. Question"
    page.submit()
    page.visitor.until_said("Not saved; your input is still here.")
    page.visitor.until("!Htx.annotationStore.selected.submissionStarted")  # else no draft is saved any more
    assert "of the image; the limit is 5 %." in page.visitor.text()
    page.close("Not saved")
    assert (page.written("Question"), page.written("Answer"), page.chosen()) == (QUESTION, ANSWER, ["OCR"])
    assert page.visitor.run(f"{REGIONS}.length") == 1
    page.delete(large, item.image)
    page.visitor.until_said("no box yet")
    page.visitor.press("t")
    target = campaign.target(item).grown(12)
    page.draw(target, item.image)
    page.visitor.until_said("limit 5 %")
    page.submit()
    page.until_saved()
    check_saved(page, campaign, target, item)
    return item


def check_saved(page: Labelling, campaign: Campaigning, target: Box, item: PoolImage) -> None:
    """What the page posted and the server answered: one upright box, where the mouse was."""
    saved = next(json.loads(one.body) for one in page.visitor.answers("/annotations?") if one.status == 201)
    box = next(one for one in saved["result"] if one["type"] == "rectanglelabels")
    assert (box["original_width"], box["original_height"]) == (item.image.width, item.image.height)
    drawn = to_corners(box["value"], item.image.width, item.image.height)
    step = item.image.width / page.frame()[2] + 1  # a pixel of the window, and one for rounding
    assert max(abs(a - b) for a, b in zip(drawn, target, strict=True)) <= step, (drawn, target)
    assert saved["lead_time"] > 0


def check(page: Labelling, campaign: Campaigning, item: PoolImage) -> None:
    """The checker: sees nobody's name, answers before looking, finds the record in the form, accepts."""
    page.log_in(CHECKER, PASSWORD)
    guide = page.open_round(campaign.project("cross_check"))
    assert "Checking another annotator's record" in guide
    assert campaign.item(page) == item
    page.visitor.until_said("Answer the question yourself")
    check_record_is_withheld(page)
    check_author_is_hidden(page)
    page.visitor.click(".dr-first button")
    page.visitor.until_said("Answer the question first.")
    page.visitor.type("input[name=own_answer]", "half an ans")
    page.open_task(campaign.project("cross_check"))
    page.visitor.until("document.querySelector('input[name=own_answer]')?.value === 'half an ans'")
    page.answer_first(ANSWER)
    page.visitor.until_said(f"Answer: {ANSWER}")
    page.visitor.until(f"{REGIONS}.length === 1")
    check_author_is_hidden(page)
    page.visitor.until(f"{field('Your own answer')}.readOnly")
    assert page.written("Your own answer") == ANSWER
    page.choose("Fix")
    assert (page.written("Question"), page.written("Answer")) == (QUESTION, ANSWER)
    page.until_chosen("Fix", "OCR")
    page.choose("Accept")
    page.submit()
    page.until_saved()


def check_record_is_withheld(page: Labelling) -> None:
    """Neither the page nor what it fetched has the answer or a box; nothing can be drawn or submitted."""
    assert f"Question: {QUESTION}" in page.visitor.text()
    fetched = {one.url: one.body for one in page.visitor.answers("/api/")}
    assert [
        url for url, body in fetched.items() if ANSWER in body or "7\\\\_a" in body or "rectanglelabels" in body
    ] == []
    assert "No. 7" not in page.visitor.run("document.documentElement.outerHTML")
    page.visitor.press("1")
    assert page.visitor.run(f"{REGIONS}.length + Htx.annotationStore.selected.serializeAnnotation().length") == 0
    assert page.visitor.run("document.querySelector('button[name=submit]').getBoundingClientRect().width") == 0


def check_author_is_hidden(page: Labelling) -> None:
    fetched = page.visitor.answers("/api/")
    assert any("next_task" in one.url for one in fetched), "the page has asked for its task"
    everything = {one.url: one.body for one in fetched}
    everything["the page"] = page.visitor.run("document.documentElement.outerHTML")
    for name in (AUTHOR, *AUTHORS_NAME.split()):
        assert [where for where, text in everything.items() if name in text] == []
    tasks: list[Any] = [json.loads(one.body) for one in fetched if "next_task" in one.url]
    assert [task["annotations"] for task in tasks] == [[]] * len(tasks)


def accept(page: Labelling, campaign: Campaigning, item: PoolImage) -> None:
    """The expert."""
    page.log_in(EXPERT, PASSWORD)
    page.open_round(campaign.project("accept"))
    assert campaign.item(page) == item
    page.visitor.until_said(f"Answer: {ANSWER}")
    page.visitor.until(f"{REGIONS}.length === 1")
    page.choose("Accept")
    page.submit()
    page.until_saved()


def test_a_record_that_came_back_is_offered_first_and_shows_the_reasons(page: Labelling, campaign: Campaigning) -> None:
    send_back(campaign)
    page.log_in(THIRD, PASSWORD)
    page.visitor.until_said("1 sent back to you")
    page.visitor.click("a.next")
    page.visitor.until_said("Labeling Instructions")
    page.close("Labeling Instructions")
    page.visitor.until(SHOWN)
    page.visitor.until_said("0 of 1 today, 1 sent back to you")
    shown = page.visitor.text()
    assert "This record was rejected:" in shown
    assert "two signs" in shown
    page.visitor.until(f"{field('Answer')}.ariaLabel === '4. Answer'")
    assert gets_cursor(page, after_a_press_on=field("Answer"))
    assert not gets_cursor(page, after_a_press_on="document.body"), "Label Studio asks for it when it draws the field"
    page.visitor.press("2")  # a choice, and not a letter of the answer that is there
    page.until_chosen("Attribute")


def gets_cursor(page: Labelling, *, after_a_press_on: str) -> bool:
    """Whether the answer's field gets the cursor from a script, right after the mouse was pressed there."""
    script = f"""((field, pressed) => {{
        pressed.dispatchEvent(new PointerEvent('pointerdown', {{bubbles: true}}));
        document.activeElement.blur();
        field.focus();
        return document.activeElement === field;
    }})({field("Answer")}, {after_a_press_on})"""
    return bool(page.visitor.run(script))


def send_back(campaign: Campaigning) -> None:
    """A record of the third annotator, which a checker rejects, both over the API."""
    size = next((item.image.width, item.image.height) for item in pool_of(campaign.workspace).values())
    record = [*boxes(size, SMALL), choice("category", "ocr"), text("question", "Which?"), text("answer", "a")]
    verdict = [text("blind_answer", "b"), choice("verdict", "reject"), choice("reason", "ambiguous")]
    for email, round, result in (
        (THIRD, "annotate", record),
        (CHECKER, "cross_check", [*verdict, text("comment", "two signs")]),
    ):
        account = campaign.studio.add_person(email, role="annotator", password=PASSWORD)
        with http_client(campaign.studio.url, account["token"]) as client:
            query = {"id": "next_task", "project": campaign.project(round)}
            task = client.post("/api/dm/actions", params=query, json={}).json()
            if round == "cross_check":
                settled(client, task, "b")
            image = pool_of(campaign.workspace)[task["data"]["image"].rpartition("/")[2]].image
            frame = {"original_width": image.width, "original_height": image.height}
            body = {
                "result": [{**entry, **(frame if entry["id"] == "b" else {})} for entry in result],
                "lead_time": 9.0,
            }
            said = client.post(f"/api/tasks/{task['id']}/annotations/", json=body)
            assert said.status_code == 201, said.text
        campaign.sync()


@pytest.fixture
def begun(page: Labelling, campaign: Campaigning) -> Labelling:
    """Somebody at a new record: box and category are there, and the texts are typed, in fields that were not left."""
    page.log_in(FOURTH, PASSWORD)
    page.open_task(campaign.project("annotate"))
    page.visitor.run("Htx.annotationStore.selected.deleteAllRegions()")  # of the test before
    item = campaign.item(page)
    page.visitor.press("t")
    page.draw(campaign.target(item).grown(20), item.image)
    page.choose("OCR")
    page.write("Question", QUESTION)
    page.write("Answer", ANSWER)
    return page


def test_what_was_typed_is_there_again_after_a_reload_the_back_button_and_at_another_computer(
    begun: Labelling, campaign: Campaigning, port: int
) -> None:
    project, written = campaign.project("annotate"), {"Question": QUESTION, "Answer": ANSWER}
    begun.until_drafted("No. 7_a")
    begun.open_task(project)
    assert {heading: begun.written(heading) for heading in written} == written
    begun.write("Question", "Left at once")
    begun.visitor.run("history.go(-2)")
    begun.visitor.until_said("Log out")
    begun.visitor.run("history.go(2)")
    begun.visitor.until(f"{field('Question')}?.value === 'Left at once'")
    with visitor(port, SIZE) as made:
        elsewhere = Labelling(made, campaign.studio.url)
        elsewhere.log_in(FOURTH, PASSWORD)
        elsewhere.open_task(project)
        assert elsewhere.written("Answer") == ANSWER


def test_work_that_only_the_browser_has_is_put_back_unless_the_task_has_changed(
    begun: Labelling, campaign: Campaigning
) -> None:
    begun.until_drafted("No. 7_a")
    change_kept(begun, "Only here", campaign)
    begun.visitor.until(f"{field('Question')}.value === 'Only here'")
    begun.until_drafted("Only here")
    change_kept(begun, "Since it was sent", campaign, draft="of an earlier time")
    begun.visitor.until(f"{field('Question')}.value === 'Since it was sent'")
    begun.until_drafted("Since it was sent")
    change_kept(begun, "Before the draft", campaign, draft="of an earlier time", sent="")
    begun.visitor.until_said("This browser holds other work of yours on this task than the server.")
    begun.visitor.until_said("Since it was sent")  # as a text and not in a field, until one is chosen
    begun.visitor.click("#darkroom-bar button")
    begun.visitor.until(f"{field('Question')}.value === 'Before the draft'")
    begun.until_drafted("Before the draft")
    change_kept(begun, "Of another form", campaign, version="another")
    begun.visitor.until(f"JSON.parse(localStorage.getItem({KEPT}[0])).version === 'another'")
    assert begun.written("Question") == "Before the draft"


def change_kept(page: Labelling, question: str, campaign: Campaigning, **changes: str) -> None:
    """Opens the task again with another question in the browser's copy, as if no draft had reached the server."""
    page.visitor.until(f"{KEPT}.length === 1")
    page.visitor.run(f"""(() => {{
        const key = {KEPT}[0], held = JSON.parse(localStorage.getItem(key));
        const copy = {{...held, drafted: false, ...{json.dumps(changes)}}};
        copy.results.find(one => one.from_name === 'question').value.text = [{json.dumps(question)}];
        window.addEventListener('pagehide', () => localStorage.setItem(key, JSON.stringify(copy)));
    }})()""")
    page.open_task(campaign.project("annotate"))


def test_a_second_tab_with_the_same_task_changes_nothing_until_it_takes_over(
    begun: Labelling, campaign: Campaigning, port: int
) -> None:
    with visitor(port, SIZE, beside=begun.visitor) as made:
        second = Labelling(made, campaign.studio.url)
        second.open_task(campaign.project("annotate"))
        made.until_said("You have this task open in another tab.")
        made.until("Htx.annotationStore.selected.readonly && document.querySelector('button[name=submit]').disabled")
        begun.visitor.call("Page.bringToFront")  # one behind another is not drawn
        begun.write("Answer", "From the first tab")
        made.call("Page.bringToFront")
        made.click("#darkroom-bar button")
        begun.visitor.until_said("You work on this task in another tab now.")
        begun.visitor.until("Htx.annotationStore.selected.readonly")
        made.until(f"{field('Answer')}?.value === 'From the first tab'")
        assert not made.run("Htx.annotationStore.selected.readonly")


def test_a_submission_outlasts_a_lost_line_and_an_ended_session_and_is_stored_once(
    begun: Labelling, campaign: Campaigning, port: int
) -> None:
    task = begun.visitor.run("Htx.task.id")
    begun.until_drafted("No. 7_a")
    with visitor(port, SIZE) as made:
        elsewhere = Labelling(made, campaign.studio.url)
        elsewhere.log_in(FOURTH, PASSWORD)
        elsewhere.open_task(campaign.project("annotate"))
        assert elsewhere.written("Question") == QUESTION
        submit_in_trouble(begun, campaign, port, task)
        made.call("Page.bringToFront")
        elsewhere.submit()
        made.until_said("This task was submitted before, from another tab or browser.")
    assert answers_to(task, campaign) == [ANSWER]


def submit_in_trouble(begun: Labelling, campaign: Campaigning, port: int, task: int) -> None:
    """Submits without a line, then with lost answers, then after the session, and while somebody else is logged in."""
    begun.visitor.cut()
    begun.submit()
    begun.visitor.until_said("The server does not answer.")
    begun.visitor.until(f"document.querySelector('.dr-side')?.innerText.includes({json.dumps(QUESTION)})")
    begun.visitor.lose_answers("/annotations?")
    begun.visitor.cut(False)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not answers_to(task, campaign):
        assert time.monotonic() < deadline, "it was not sent when the line was back"
        begun.visitor.run("0")
    begun.visitor.until_said("The server does not answer.")
    with visitor(port, SIZE, beside=begun.visitor) as made:
        made.open(f"{begun.url}/logout/")
        made.until("location.pathname.startsWith('/user/login')")
        begun.visitor.lose_answers("")
        begun.visitor.until_said("Your session has ended.")
        assert answers_to(task, campaign) == [ANSWER]
        Labelling(made, campaign.studio.url).log_in(CHECKER, PASSWORD)
        made.until_said("Log out")
        begun.visitor.until_said("Somebody else has logged in")
        made.open(f"{begun.url}/logout/")
        Labelling(made, campaign.studio.url).log_in(FOURTH, PASSWORD)
        made.until_said("Log out")
    begun.visitor.call("Page.bringToFront")  # which the page takes for a reason to look
    begun.visitor.until(f"window.Htx?.noTask || window.Htx?.task && Htx.task.id !== {task}")
    assert answers_to(task, campaign) == [ANSWER]
    assert begun.visitor.run(KEPT) == []


def answers_to(task: int, campaign: Campaigning) -> list[str]:
    """The answers of what was submitted to a task."""
    with http_client(campaign.studio.url, server_of(campaign.workspace).admin.token) as client:
        submitted = client.get(f"/api/tasks/{task}/annotations/").json()
    entries = [entry for one in submitted for entry in one["result"]]
    return [entry["value"]["text"][0] for entry in entries if entry["from_name"] == "answer"]
