"""Questions and answers in chat messages, with placeholders, wrapped: the words themselves come out."""

from __future__ import annotations

import json

import pytest

from pipelines.rejects import Reason, RowFault
from pipelines.sources.columns import Columns
from pipelines.sources.texts import answer_of, question_of, unwrapped

CHAT = [
    {"role": "system", "content": "Call tools."},
    {"role": "user", "content": "<image>\nWhich colour?\nThink first, call a tool."},
    {"role": "assistant", "content": "red"},
    {"role": "user", "content": "And now?"},
]
CONVERSATION = [{"from": "human", "value": "Which colour?<image>"}, {"from": "gpt", "value": "red"}]
PARTS = [{"role": "user", "content": [{"type": "image", "text": None}, {"type": "text", "text": "Which colour?"}]}]


@pytest.mark.parametrize("chat", [CHAT, CONVERSATION, PARTS, json.dumps(CHAT), str(CONVERSATION)])
def test_the_question_is_what_the_user_says_first(chat):
    columns = Columns(question="prompt", drop_lines=("Think first",))
    assert question_of({"prompt": chat}, columns) == "Which colour?"


@pytest.mark.parametrize("chat", [CHAT, CONVERSATION])
def test_the_answer_is_the_first_reply(chat):
    assert answer_of({"prompt": chat}, Columns(answer="prompt")) == "red"


def test_a_chat_without_a_question_is_a_wrong_type():
    with pytest.raises(RowFault, match="column 'prompt': expected a message of user or human, found none") as caught:
        question_of({"prompt": CHAT[:1]}, Columns(question="prompt"))
    assert caught.value.reason is Reason.WRONG_TYPE


@pytest.mark.parametrize(
    ("said", "question"),
    [
        ("<image>What is it?", "What is it?"),
        ("<image><image>\nWhat differs?", "What differs?"),
        ("Is <image_1> older than <image_2>?", "Is older than ?"),
        ("<|vision_start|><|image_pad|><|vision_end|>What?", "What?"),
        ("<video>\nWho?", "Who?"),
        ("What does <img> mean?  Two  blanks.", "What does <img> mean?  Two  blanks."),
    ],
)
def test_placeholders_are_no_part_of_a_question(said, question):
    assert question_of({"question": said}, Columns()) == question


def test_of_several_columns_the_first_that_is_not_empty_counts():
    columns = Columns(question=("question", "conversations"))
    assert question_of({"question": "", "conversations": CONVERSATION}, columns) == "Which colour?"
    assert question_of({"question": "Which?", "conversations": CONVERSATION}, columns) == "Which?"
    with pytest.raises(RowFault, match="column 'conversations': expected text, found nothing"):
        question_of({}, columns)


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("<answer>B</answer>", "B"),
        ("<think>A?</think> <answer> B </answer>", "B"),
        (r"So it is \boxed{\frac{1}{2}}.", r"\frac{1}{2}"),
        (r"<answer>\boxed{42}</answer>", "42"),
        ("$x^2$", "x^2"),
        ("$$x$$", "x"),
        (r"\(x\)", "x"),
        (r"\boxed{$x$}", "x"),
        ("$5 and $6", "$5 and $6"),
        ("plain", "plain"),
    ],
)
def test_wrapping_is_no_part_of_an_answer(text, bare):
    assert unwrapped(text, "answer") == bare
    assert answer_of({"answer": text}, Columns()) == text
    assert answer_of({"answer": text}, Columns(unwrap_answer=True)) == bare


@pytest.mark.parametrize("text", ["<answer>B", r"\boxed{42", r"\boxed{}", r"\boxed{1} or \boxed{2}"])
def test_wrapping_that_is_cut_off_or_ambiguous_is_malformed(text):
    with pytest.raises(RowFault, match="column 'solution': ") as caught:
        unwrapped(text, "solution")
    assert caught.value.reason is Reason.MALFORMED_ROW


FIRST = Columns(unwrap_answer=True, answer_list="first")


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        ([r"\boxed{12}"], "12"),
        ([r"\boxed{['United States', 'USA']}"], "United States"),
        (['\\boxed{["a", "b"]}'], "a"),
        ('["12", "twelve"]', "12"),
        ([r"\boxed{[0, 1]}"], "[0, 1]"),
        ("12", "12"),
        (12, "12"),
    ],
)
def test_of_accepted_spellings_the_first_is_kept(value, answer):
    assert answer_of({"answer": value}, FIRST) == answer


@pytest.mark.parametrize("value", [[], [None], [[]], None, {"a": 1}, True])
def test_what_holds_no_spelling_is_a_wrong_type(value):
    with pytest.raises(RowFault) as caught:
        answer_of({"answer": value}, FIRST)
    assert caught.value.reason is Reason.WRONG_TYPE
