"""Conversations: each question is a sample after the turns before it; images in parts are the row's."""

from __future__ import annotations

import base64

import pytest

from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.sources.columns import Columns
from darkroom.pipelines.sources.mapping import map_row

TALK = Columns(question="talk", answer="talk")
LLAVA = [
    {"from": "human", "value": "<image>\nWhat colour is the square?"},
    {"from": "gpt", "value": "Red"},
    {"from": "human", "value": "Is it in the left half?"},
    {"from": "gpt", "value": "No"},
    {"from": "human", "value": "How many are there?"},
    {"from": "gpt", "value": "1"},
]
SECOND = "Earlier turns:\nUser: What colour is the square?\nAssistant: Red\n\nThe question:\nIs it in the left half?"


@pytest.fixture
def samples(folder):
    def read(talk, columns=TALK, **changes) -> list[SourceRow | BadRow]:
        row = {"image": "sign.png", "talk": talk, **changes}
        return list(map_row(row, columns, where="a.json:1", folder=folder, license=""))

    return read


def test_every_question_is_a_sample_after_the_turns_before_it(samples):
    first, second, third = samples(LLAVA)
    assert [row.row for row in (first, second, third)] == ["a.json:1", "a.json:1#2", "a.json:1#3"]
    assert (first.question, first.answer) == ("What colour is the square?", "Red")
    assert (second.question, second.answer) == (SECOND, "No")
    assert third.question.endswith("Assistant: No\n\nThe question:\nHow many are there?")
    assert len({row.images for row in (first, second, third)}) == 1
    assert first.unread == ()


@pytest.mark.parametrize(("turns", "answer"), [("first", "Red"), ("last", "1")])
def test_a_setting_chooses_the_question_and_the_others_are_counted(samples, turns, answer):
    (row,) = samples(LLAVA, Columns(question="talk", answer="talk", turns=turns))
    assert row.answer == answer
    assert row.unread == ("further question", "further question")


def test_an_answer_in_a_column_of_its_own_is_that_of_the_last_question(samples):
    (row,) = samples(LLAVA[:3], Columns(question="talk"), answer="no")
    assert (row.question, row.answer) == (SECOND, "no")


def test_a_question_without_a_reply_and_other_roles_are_counted(samples):
    system = {"from": "system", "value": "Be brief."}
    (row,) = samples([system, *LLAVA[:3], {"from": "tool", "value": "7"}])
    assert row.unread == ("turn of system", "turn of tool", "question without a reply")


def test_a_turn_shows_the_images_up_to_it(samples):
    talk = [LLAVA[0], LLAVA[1], {"from": "human", "value": "And in <image>?"}, {"from": "gpt", "value": "Blue"}]
    first, second = samples(talk, image=["sign.png", "deep/sign.png"])
    assert (len(first.images), first.question) == (1, "What colour is the square?")
    assert len(second.images) == 2
    assert second.question.startswith("Earlier turns:\nUser: <image>\nWhat colour")
    (lost,) = samples(talk)
    assert lost.reason is Reason.MISSING_IMAGE


def test_a_bad_reply_is_a_row_of_its_own(samples):
    first, second = samples([*LLAVA[:3], {"from": "gpt", "value": "nan"}])
    assert (first.answer, second.row, second.reason) == ("Red", "a.json:1#2", Reason.MALFORMED_ROW)


@pytest.fixture
def url(folder):
    return f"data:image/png;base64,{base64.b64encode((folder / 'sign.png').read_bytes()).decode()}"


@pytest.mark.parametrize("images", [None, "talk"])
@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": ...}},
        {"type": "image_url", "image_url": ...},
        {"type": "input_image", "image_url": ...},
        {"type": "image", "image": "sign.png"},
        {"type": "image", "url": ...},
        {"type": "image", "path": "sign.png"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "base64"}},
        {"type": "image", "image": {"bytes": None, "path": "sign.png"}, "text": None},
    ],
)
def test_images_in_parts_are_the_rows_images(samples, url, images, part):
    def filled(value):
        if isinstance(value, dict):
            return {name: filled(inner) for name, inner in value.items()}
        return {...: url, "base64": url.partition(",")[2]}.get(value, value)

    talk = [
        {"role": "user", "content": [filled(part), {"type": "text", "text": "What colour?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "blue"}]},
    ]
    (row,) = samples(talk, Columns(images=images, question="talk", answer="talk"), image=...)
    assert (len(row.images), row.question, row.answer) == (1, "What colour?", "blue")


def test_parts_without_an_image_of_their_own_mark_the_columns_images(samples):
    content = [{"type": "text", "text": "Is"}, {"type": "image"}, {"type": "text", "text": "blue?"}]
    (row,) = samples([{"role": "user", "content": content}, LLAVA[1]])
    assert (row.question, len(row.images)) == ("Is\n<image>\nblue?", 1)


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        ({"type": "video", "video": "a.mp4"}, Reason.NOT_APPLICABLE),
        ({"type": "input_audio", "input_audio": {}}, Reason.MALFORMED_ROW),
    ],
)
def test_parts_that_cannot_be_read_are_named(samples, part, reason):
    (row,) = samples([{"role": "user", "content": [part, {"type": "text", "text": "What?"}]}, LLAVA[1]])
    assert row.reason is reason
    assert row.evidence.startswith("message 1")
