"""A turn that arrives in pieces is the turn that arrives at once."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from darkroom.pipelines.models.protocols import PROTOCOLS, Malformed, ParsedTurn
from tests.pipelines.models.protocols.pieces import TEXTS

EVERY = pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)


def cut(text: str, places: list[int]) -> list[str]:
    ends = sorted(place % (len(text) + 1) for place in places)
    return [text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True)]


@EVERY
@given(text=TEXTS, places=st.lists(st.integers(0, 10_000), max_size=8))
def test_any_pieces_give_what_the_whole_gives(protocol, text, places):
    stream = protocol.stream()
    for piece in cut(text, places):
        stream.feed(piece)
    assert stream.finish() == protocol.parse(text)


@EVERY
@given(text=TEXTS, more=TEXTS)
def test_nothing_counts_after_the_end(protocol, text, more):
    text += "</tool_call>." if protocol.name == "tool_call" else "</code>"
    stream = protocol.stream()
    stream.feed(text)
    if stream.ended:
        assert protocol.parse(text + more) == protocol.parse(text) == stream.finish()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("thyme", "<answer>1</answer><code>x</code>"),
        ("pyvision", "<interpreter><code>x</code>"),
        ("tool_call", "<tool_response><tool_call>x</tool_call>."),
        ("tool_call", "<tool_call>x</tool_call><tool_call>"),
    ],
)
def test_nor_does_it_count_as_evidence(name, text):
    parsed = PROTOCOLS[name].parse(text)
    assert isinstance(parsed, Malformed)
    assert PROTOCOLS[name].parse(f"{text} and more") == parsed


@EVERY
@given(text=TEXTS)
def test_where_code_is_does_not_depend_on_the_pieces(protocol, text):
    whole, letters = protocol.stream(), protocol.stream()
    whole.feed(text)
    for letter in text:
        letters.feed(letter)
    assert (whole.in_code, whole.ended) == (letters.in_code, letters.ended)


@EVERY
def test_code_is_between_the_tags_and_nowhere_else(protocol):
    text = protocol.write_round("I look.", "print(1)", first=True)
    stream, marked = protocol.stream(), ""
    for letter in text:
        marked += letter if stream.in_code else ""
        stream.feed(letter)
    name = "tool_call" if protocol.name == "tool_call" else "code"
    assert marked == text.split(f"<{name}>")[1]
    assert not stream.in_code


@pytest.mark.parametrize("name", ["thyme", "pyvision"])
def test_a_turn_ends_with_its_code(name):
    stream = PROTOCOLS[name].stream()
    stream.feed(PROTOCOLS[name].write_round("I look.", "print(1)", first=True)[:-1])
    assert not stream.ended
    stream.feed(">")
    assert stream.ended


def test_a_call_ends_when_no_second_one_can_follow():
    protocol = PROTOCOLS["tool_call"]
    call = protocol.write_round("I look.", "print(1)", first=True)
    stream = protocol.stream()
    stream.feed(call + "\n<tool")
    assert not stream.ended
    stream.feed("_response>")
    assert stream.ended
    assert stream.finish() == protocol.parse(call)


def test_a_second_call_in_pieces_belongs_to_the_turn():
    protocol = PROTOCOLS["tool_call"]
    stream = protocol.stream()
    call = protocol.write_round("", "print(1)", first=True)
    for letter in f"I look twice.\n{call}\n{call}\nThen":
        stream.feed(letter)
    assert stream.ended
    assert stream.finish() == ParsedTurn("I look twice.", code="print(1)\nprint(1)")


@EVERY
def test_an_answer_is_complete_when_the_policy_stops(protocol):
    stream = protocol.stream()
    stream.feed(protocol.write_answer("So.", "42", first=True))
    assert not stream.ended
    assert stream.finish().answer == "42"


@EVERY
def test_nothing_at_all_is_malformed(protocol):
    assert isinstance(protocol.stream().finish(), Malformed)
