"""Thyme's protocol: what a policy wrote is taken apart as it was meant, or refused."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.models.messages import ImagePart, Text
from darkroom.pipelines.models.protocols import PROTOCOLS, Malformed, ParsedTurn, Thyme
from darkroom.pipelines.models.protocols.markup import lines
from darkroom.pipelines.records import ImageRef, Observation

THYME = Thyme()
IMAGE = ImageRef("a" * 64, 2400, 1600, "RGB", "PNG")
ROUND = "<think>Too small.\n<code>\n```python\nprint(1)\n```\n</code>"
MARKERS = ("<code>", "</code>", "<answer>", "</answer>", "think>", "sandbox_output>", "\r\n")


def free_of_markers(text: str) -> bool:
    return not any(marker in text for marker in MARKERS)


TEXTS = st.text().filter(free_of_markers)
CODES = st.one_of(TEXTS, st.text("`python \n\tx=1'\"")).filter(lambda code: code.strip() and "</code>" not in code)


def refusal(text: str) -> str:
    parsed = THYME.parse(text)
    assert isinstance(parsed, Malformed)
    return parsed.evidence


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "neither <code> nor <answer>"),
        ("<think>I wonder", "neither <code> nor <answer>"),
        ("<think>So.</think><answer>42", "neither <code> nor <answer>"),
        ("42</answer>", "neither <code> nor <answer>"),
        ("<answer>1</answer><answer>2</answer>", "2 <answer> blocks"),
        ("<answer>1</answer><answer>1</answer>", "2 <answer> blocks"),
        ("<answer> \n</answer>", "<answer> is empty"),
        (f"<think>So.</think><answer>42</answer>{ROUND}", "answers before its code"),
        ("<think>a<sandbox_output>7</sandbox_output>b</think><answer>7</answer>", "marker of its own"),
        ("<think>a</sandbox_output>" + ROUND, "marker of its own"),
        ("<think>a<code>print(1)</code>", "no single ```python block"),
        ("<think>a<code>\n```python\nprint(1)", "no single ```python block"),
        ("<think>a<code>\n```python\nprint('</code>')\n```\n</code>", "no single ```python block"),
        ("<think>a<code>\n```bash\nls\n```\n</code>", "no single ```python block"),
        ("<think>a<code>\nfirst:\n```python\nprint(1)\n```\n</code>", "no single ```python block"),
        ("<think>a<code></code>", "no single ```python block"),
        ("<think>a<code>\n```python\n\n```\n</code>", "the code block is empty"),
        ("<think>a<code>\n```python\n   \n\n```\n</code>", "the code block is empty"),
    ],
)
def test_a_turn_that_is_neither_code_nor_answer_is_malformed(text, said):
    assert said in refusal(text)


def test_the_evidence_is_an_excerpt():
    assert len(refusal("word " * 10_000)) < 300


@pytest.mark.parametrize(
    "text",
    [
        ROUND,
        ROUND.removesuffix("</code>"),  # a stop string that was cut off
        ROUND.removesuffix("\n</code>"),
        ROUND.replace("\n", "\r\n"),
        ROUND.replace("python", "py"),
        ROUND.replace("python", ""),
        ROUND.replace("\n```\n", "```"),
        ROUND.replace("```python", "  ```python  "),
        f"{ROUND}\n<sandbox_output>1</sandbox_output>It is 1.</think>\n<answer>1</answer>",
        f"{ROUND}<code>\n```python\nprint(2)\n```\n</code>",
        f"{ROUND}</think>",
    ],
)
def test_code_counts_up_to_its_first_end(text):
    assert THYME.parse(text) == ParsedTurn("Too small.", code="print(1)")


def test_fences_inside_strings_belong_to_the_code():
    code = 'text = """\n```python\nx\n```\n"""\nprint(text)'
    assert THYME.parse(THYME.write_round("", code, first=True)).code == code


@pytest.mark.parametrize(
    "text",
    [
        "<think>It says 42.</think>\n<answer>42</answer>",
        "It says 42.</think><answer>\n42\n</answer>",
        "It says 42.\r\n</think>\r\n<answer>42</answer>\r\n",
        "It says 42.<answer>42</answer>",
    ],
)
def test_an_answer_ends_the_rollout(text):
    assert THYME.parse(text) == ParsedTurn("It says 42.", answer="42")


def test_an_answer_inside_the_code_is_code():
    parsed = THYME.parse("<code>\n```python\nprint('<answer>1</answer>')\n```\n</code>")
    assert (parsed.code, parsed.answer) == ("print('<answer>1</answer>')", None)


@given(TEXTS, CODES, st.booleans())
def test_a_round_that_was_written_is_taken_apart_again(thought, code, first):
    parsed = THYME.parse(THYME.write_round(thought, code, first=first))
    assert parsed == ParsedTurn(lines(thought).strip(), code=lines(code))


@given(TEXTS, TEXTS.filter(str.strip), st.booleans())
def test_an_answer_that_was_written_is_taken_apart_again(thought, answer, first):
    parsed = THYME.parse(THYME.write_answer(thought, answer, first=first))
    assert parsed == ParsedTurn(lines(thought).strip(), answer=lines(answer).strip())


@given(
    st.lists(st.sampled_from(["<code>", "</code>", "<answer>", "</answer>", "```", "python", "\n", "x"])).map("".join)
)
def test_any_text_is_a_turn_or_malformed(text):
    parsed = THYME.parse(text)
    assert isinstance(parsed, Malformed) or parsed.code or parsed.answer


def test_only_the_first_turn_opens_the_reasoning():
    assert THYME.write_round("a", "b", first=True).startswith("<think>")
    assert not THYME.write_round("a", "b", first=False).startswith("<think>")
    assert THYME.write_answer("a", "b", first=False) == "a</think>\n<answer>b</answer>"


def test_an_observation_shows_images_before_text():
    wrapped = THYME.wrap(Observation("ok", "width 7\n", images=(IMAGE, IMAGE)))
    assert wrapped == (
        Text("<sandbox_output>"),
        ImagePart(IMAGE),
        ImagePart(IMAGE),
        Text("width 7"),
        Text("</sandbox_output>"),
    )


@pytest.mark.parametrize("text", ["/mnt/data/crop_1.png\n", "a.PNG\n\nb.jpeg", "", "\n"])
def test_text_that_is_only_the_paths_of_shown_images_is_left_out(text):
    wrapped = THYME.wrap(Observation("ok", text, images=(IMAGE,)))
    assert wrapped == (Text("<sandbox_output>"), ImagePart(IMAGE), Text("</sandbox_output>"))


@pytest.mark.parametrize("text", ["crop.png 3", "saved crop.png", "12"])
def test_text_that_says_more_than_a_path_stays(text):
    assert Text(text) in THYME.wrap(Observation("ok", text, images=(IMAGE,)))


def test_a_path_stays_when_no_image_is_shown():
    assert Text("/mnt/data/crop.png") in THYME.wrap(Observation("ok", "/mnt/data/crop.png"))


def test_an_error_comes_after_what_was_printed():
    wrapped = THYME.wrap(Observation("error", "1\n", error="NameError: x"))
    assert wrapped[1] == Text("1\nNameError: x")


def test_an_observation_of_nothing_is_its_markers():
    assert THYME.wrap(Observation("ok", "")) == (Text("<sandbox_output>"), Text("</sandbox_output>"))


def test_the_opening_shows_the_images_then_the_question_with_their_sizes():
    system, user = THYME.opening("What does it say?", (IMAGE,))
    assert (system.role, user.role) == ("system", "user")
    image, text = user.parts
    assert image == ImagePart(IMAGE)
    assert isinstance(text, Text)
    assert text.text.startswith("What does it say?")
    assert "2400x1600" in text.text


def test_a_question_without_images_speaks_of_no_size():
    (text,) = THYME.opening("2 + 2?", ())[1].parts
    assert text == Text("2 + 2?")


def test_protocols_are_known_by_their_names():
    assert all(name == protocol.name for name, protocol in PROTOCOLS.items())
