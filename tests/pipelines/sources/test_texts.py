"""Questions and answers in chat messages, with placeholders, wrapped: the words themselves come out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.records.answers import letter_of, split_choice
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.sources.answers import answer_in, unwrapped
from darkroom.pipelines.sources.columns import Columns, list_in
from darkroom.pipelines.sources.conversations import talk_of
from darkroom.pipelines.sources.texts import LETTERS, from_letters, lettered, plain_label, split_question

CHAT = [
    {"role": "system", "content": "Call tools."},
    {"role": "user", "content": "<image>\nWhich colour?\nThink first, call a tool."},
    {"role": "assistant", "content": "red"},
    {"role": "user", "content": "And now?"},
]
CONVERSATION = [{"from": "human", "value": "Which colour?<image>"}, {"from": "gpt", "value": "red"}]
PARTS = [{"role": "user", "content": [{"type": "image", "text": None}, {"type": "text", "text": "Which colour?"}]}]


def question_of(row, columns, n_images=0):
    return next(talk_of(row, columns).asked(columns, n_images)).question


def answer_of(row, columns):
    return answer_in(row["answer"], "answer", columns).text


@pytest.mark.parametrize("chat", [CHAT, CONVERSATION, PARTS, json.dumps(CHAT), str(CONVERSATION)])
def test_the_question_is_what_the_user_says_first(chat):
    columns = Columns(question="prompt", answer="prompt", drop_lines=("Think first",))
    chat = [*list_in(chat), {"role": "assistant", "content": ""}]
    assert question_of({"prompt": chat}, columns, 1) == "Which colour?"


@pytest.mark.parametrize("chat", [CHAT, CONVERSATION])
def test_the_answer_is_the_first_reply(chat):
    columns = Columns(question="prompt", answer="prompt")
    assert next(talk_of({"prompt": chat}, columns).asked(columns, 1)).answer == "red"


def test_a_chat_without_a_question_is_a_wrong_type():
    with pytest.raises(RowError, match="column 'prompt': expected a message of user or human, found none") as caught:
        talk_of({"prompt": CHAT[:1]}, Columns(question="prompt"))
    assert caught.value.reason is Reason.WRONG_TYPE


@pytest.mark.parametrize(
    ("said", "n_images", "question"),
    [
        ("<image>What is it?", 1, "What is it?"),
        ("<image><image>\nWhat differs?", 2, "What differs?"),
        ("<|vision_start|><|image_pad|><|vision_end|>What?", 1, "What?"),
        ("<video>\nWho?", 0, "Who?"),
        ("What does <img> mean?  Two  blanks.", 1, "What does <img> mean?  Two  blanks."),
    ],
)
def test_marks_at_the_edge_are_no_part_of_a_question(said, n_images, question):
    assert question_of({"question": said, "answer": ""}, Columns(), n_images) == question


def test_of_several_columns_the_first_that_is_not_empty_counts():
    columns = Columns(question=("question", "conversations"))
    assert question_of({"question": "", "conversations": CONVERSATION}, columns, 1) == "Which colour?"
    assert question_of({"question": "Which?", "conversations": CONVERSATION}, columns) == "Which?"
    with pytest.raises(RowError, match="column 'conversations': expected text, found nothing"):
        talk_of({}, columns)


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
    with pytest.raises(RowError, match="column 'solution': ") as caught:
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
    with pytest.raises(RowError) as caught:
        answer_of({"answer": value}, FIRST)
    assert caught.value.reason is Reason.WRONG_TYPE


STYLES = ["{}. {}", "{}) {}", "({}) {}", "{}: {}", "[{}] {}", "({}){}", "{}){}", "  {}. {}  "]
OURS = ("A. red", "B. blue", "C. green")

texts = st.lists(st.from_regex(r"[a-z0-9][a-z0-9 .,$\\{}'-]{0,20}[a-z0-9]", fullmatch=True), min_size=3, max_size=26)


@pytest.mark.parametrize("style", STYLES)
def test_letters_in_other_spellings_are_letters(style):
    assert (
        lettered([style.format(letter, text) for letter, text in zip("ABC", ("red", "blue", "green"), strict=True)])
        == OURS
    )


@pytest.mark.parametrize(
    ("given", "ours"),
    [
        (["E. coli", "B. cereus"], ("A. E. coli", "B. B. cereus")),
        (["A.M.", "P.M."], ("A. A.M.", "B. P.M.")),
        (["A) red", "blue"], ("A. A) red", "B. blue")),
        (["a) red", "b) blue"], ("A. red", "B. blue")),
        (["A", "B"], ("A. A", "B. B")),
        ([], ()),
    ],
)
def test_what_only_looks_like_letters_belongs_to_the_choice(given, ours):
    assert lettered(given) == ours


def test_letters_in_another_order_are_refused():
    with pytest.raises(RowError, match="letters run B, A") as caught:
        lettered(["B) red", "A) blue"])
    assert caught.value.reason is Reason.MALFORMED_ROW


@pytest.mark.parametrize(
    "given", [{"A": "red", "B": "blue", "C": None}, {"b": "blue", "a": "red"}, {"A": "red", "B": "blue", "C": ""}]
)
def test_an_object_of_letters_is_choices(given):
    assert from_letters(given) == ("A. red", "B. blue")


@pytest.mark.parametrize("given", [{"A": "red", "C": "blue"}, {"0": "red", "1": "blue"}, {"A": None, "B": "blue"}])
def test_an_object_with_other_keys_is_refused(given):
    with pytest.raises(RowError, match="the choices' letters are"):
        from_letters(given)


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        ("[B]", "B"),
        ("b)", "B"),
        ("(B)", "B"),
        ("B:", "B"),
        ("B.", "B"),
        ("B) blue", "B. blue"),
        ("B.blue", "B. blue"),
        ("blue", "blue"),
    ],
)
def test_an_answer_s_letter_is_written_as_ours(given, plain):
    assert plain_label(given) == plain
    assert letter_of(plain, OURS) == "B"


@pytest.mark.parametrize(
    "block",
    [
        "A. red\nB. blue\nC. green",
        "A) red\n\nB) blue\nC) green\n",
        "Choices:\n(A) red\n(B) blue\n(C) green",
        "Options:\nA: red\nB: blue\nC: green",
        "choices: (A) red, (B) blue, (C) green",
        "Options: A. red B. blue C. green",
        "Choices:\n- red\n- blue\n- green",
        "The choices are:\nred\nblue\ngreen",
        "(A) red (B) blue (C) green",
        "A．red\nB．blue\nC．green",
    ],
)
def test_choices_are_cut_out_of_the_question(block):
    assert split_question(f"Which colour has the sign?\n{block}") == ("Which colour has the sign?", OURS)


@pytest.mark.parametrize(
    "question",
    [
        "Which of (A) and (B) is larger?",
        "A. is a point on the line. What is its distance?",
        "What does the sign say?\nB. red\nC. blue",
        "Let A. B. C. be points.",
        "A. red\nB. blue",
        "Choices:",
        "What are my options: none",
        "Read both lists.\nA. one\nB. two\nThen\nA. three\nB. four",
        "A. one\nB. two\nAnd more\nC. three",
        "",
    ],
)
def test_a_question_without_choices_stays_whole(question):
    assert split_question(question) == (question, ())


@pytest.mark.parametrize("block", ["\n(A) 1\n(B) 2", " (A) 1 (B) 2", "\n1\n2"])
def test_a_heading_may_follow_a_sentence(block):
    assert split_question(f"Find x. Choices:{block}") == ("Find x.", ("A. 1", "B. 2"))


def test_what_follows_the_choices_stays_with_the_question():
    stem, choices = split_question("Which colour?\nA. red\nB. blue\nAnswer with a letter.")
    assert (stem, choices) == ("Which colour?\nAnswer with a letter.", ("A. red", "B. blue"))


@given(texts, st.sampled_from(STYLES), st.sampled_from(["", "Choices:\n", "Options:\n"]))
def test_what_was_written_into_a_question_is_read_from_it(choices, style, heading):
    block = "\n".join(style.format(letter, text) for letter, text in zip(LETTERS, choices, strict=False))
    stem, found = split_question(f"What is it?\n{heading}{block}")
    assert stem == "What is it?"
    assert [split_choice(choice) for choice in found] == list(zip(LETTERS, choices, strict=False))
    assert lettered([style.format(letter, text) for letter, text in zip(LETTERS, choices, strict=False)]) == found


words = st.text(alphabet="AB Cab()[].:,\n-*Choices:Options: $\\{}12", max_size=80) | st.text(max_size=60)


@given(words)
def test_of_any_question_nothing_is_made_up(question):
    stem, choices = split_question(question)
    said = set(question.split()) | set("".join(question.split()))
    assert set(stem.split()) <= set(question.split())
    assert set("".join(split_choice(choice)[1] for choice in choices).replace(" ", "")) <= said
    assert [split_choice(choice)[0] for choice in choices] == list(LETTERS[: len(choices)])
    assert len(choices) != 1
    assert choices or stem == question


@pytest.mark.parametrize(
    ("value", "answer"), [(float("inf"), "∞"), (-float("inf"), "-∞"), (2.5, "2.5"), (10**400, str(10**400))]
)
def test_a_number_is_its_digits_and_infinity_its_sign(value: float, answer: str):
    assert answer_of({"answer": value}, Columns()) == answer


def test_nan_is_no_answer():
    with pytest.raises(RowError, match="found NaN"):
        answer_of({"answer": float("nan")}, Columns())
