"""What a protocol wrote it reads again, and what it read it writes again; nothing makes it raise."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.models.protocols import PROTOCOLS, Malformed, ParsedTurn, render
from darkroom.pipelines.models.protocols.markup import lines
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from tests.pipelines.models.protocols.pieces import TEXTS

EVERY = pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
PLAIN = st.text(st.characters(exclude_characters="<`\\{}"))
"""Words that mean nothing to any protocol."""


@EVERY
@given(thought=TEXTS, words=TEXTS, answers=st.booleans(), first=st.booleans())
def test_a_turn_that_was_written_is_read_and_written_the_same(protocol, thought, words, answers, first):
    write = protocol.write_answer if answers else protocol.write_round
    try:
        text = write(thought, words, first=first)
    except RowError:
        return
    parsed = protocol.parse(text)
    assert parsed == ParsedTurn(
        lines(thought).strip(),
        code=None if answers else lines(words),
        answer=lines(words).strip() if answers else None,
    )
    assert render(protocol, parsed, first=first) == text


@EVERY
@given(text=TEXTS, first=st.booleans())
def test_a_turn_that_was_read_can_be_written_and_read_again(protocol, text, first):
    parsed = protocol.parse(text)
    if isinstance(parsed, Malformed):
        assert 0 < len(parsed.evidence) < 600
    else:
        assert (parsed.code is None) != (parsed.answer is None)
        assert protocol.parse(render(protocol, parsed, first=first)) == parsed


@EVERY
@given(thought=PLAIN, code=PLAIN.filter(str.strip), first=st.booleans())
def test_any_plain_code_can_be_written(protocol, thought, code, first):
    assert protocol.parse(protocol.write_round(thought, code, first=first)).code == lines(code)


@EVERY
@given(thought=PLAIN, answer=PLAIN.filter(str.strip), first=st.booleans())
def test_any_plain_answer_can_be_written(protocol, thought, answer, first):
    assert protocol.parse(protocol.write_answer(thought, answer, first=first)).answer == lines(answer).strip()


@EVERY
@pytest.mark.parametrize(
    "answer", [r"\frac{1}{2}", r"\boxed{\frac{1}{2}}", r"\{1, 2\}", r"\left\{x\right.", "{}", "a b"]
)
def test_an_answer_keeps_its_braces(protocol, answer):
    assert protocol.parse(protocol.write_answer("So.", answer, first=True)).answer == answer


@EVERY
@pytest.mark.parametrize(
    "code",
    [
        "\n\nx = 1\n\n",
        "if x:\n\tprint('é')\n",
        "text = '''\n```python\nx\n```\n'''",
        "print('<answer>1</answer>')",
        "# \\",
    ],
)
def test_code_keeps_its_layout(protocol, code):
    assert protocol.parse(protocol.write_round("So.", code, first=False)).code == code


@EVERY
def test_line_ends_of_any_kind_are_one(protocol):
    text = protocol.write_round("a\r\nb\rc", "x = 1\r\ny = 2\r", first=True)
    assert "\r" not in text
    assert protocol.parse(text.replace("\n", "\r\n")) == ParsedTurn("a\nb\nc", code="x = 1\ny = 2\n")


@EVERY
@pytest.mark.parametrize("words", ["", " \n"])
def test_empty_code_and_an_empty_answer_cannot_be_written(protocol, words):
    for write in (protocol.write_round, protocol.write_answer):
        with pytest.raises(RowError, match=rf"{protocol.name} cannot hold these words: .*empty") as caught:
            write("So.", words, first=True)
        assert caught.value.reason is Reason.MALFORMED_TURN
