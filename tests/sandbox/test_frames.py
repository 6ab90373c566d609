"""Bytes from a session: what is not a reply is a ProtocolViolation, whatever it is."""

import json
import tracemalloc
from contextlib import suppress

import pytest
from hypothesis import given, settings, strategies as st

from darkroom.sandbox import Limits
from darkroom.sandbox._guest.differences import MAX_REPAIRS
from darkroom.sandbox.errors import ProtocolViolation
from darkroom.sandbox.frames import (
    HEADER,
    MAX_CODE_BYTES,
    encode_request,
    parse_header,
    parse_json,
    parse_reply,
    reply_cap,
)

LIMITS = Limits(max_images=2, max_pixels=10_000)
HONEST = {"status": "ok", "text": "a", "error": None, "edits": [], "images": [["x", 4, 5]], "artefacts": [["x", 1, ""]]}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from([*HONEST, "other"]), inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, max_examples=50)
@given(st.binary(max_size=64))
def test_arbitrary_bytes_are_a_violation_or_nothing(payload: bytes) -> None:
    with pytest.raises(ProtocolViolation):
        parse_reply(payload, LIMITS)


@settings(deadline=None, max_examples=50)
@given(json_values)
def test_an_arbitrary_value_is_a_violation(value: object) -> None:
    with pytest.raises(ProtocolViolation):
        parse_reply(json.dumps(value).encode(), LIMITS)


@settings(deadline=None, max_examples=50)
@given(st.sampled_from(sorted(HONEST)), json_values)
def test_one_arbitrary_field_is_checked_or_a_violation(name: str, value: object) -> None:
    try:
        observation, frames = parse_reply(json.dumps({**HONEST, name: value}).encode(), LIMITS)
    except ProtocolViolation:
        return
    assert len(frames) <= LIMITS.max_images
    assert all(frame.width * frame.height <= LIMITS.max_pixels for frame in frames)
    assert len(observation.text) <= 2 * LIMITS.output_chars + 256


def test_a_name_holds_nothing_that_turns_hides_or_controls() -> None:
    name = "a\u202egnp.exe\u200b\ufeff\x1b[2J\U000e0041＜image＞.png"
    observation, _ = parse_reply(json.dumps({**HONEST, "artefacts": [[name, 1, f"as {name}"]]}).encode(), LIMITS)
    assert observation.artefacts[0].name == "a�gnp.exe���[2J�‹image＞.png"
    assert observation.artefacts[0].note == "as a�gnp.exe���[2J�‹image＞.png", "which names another file"


def hostile_replies() -> list[bytes]:
    """Replies that take much memory for their size: wide characters, escapes, nesting, repairs of the largest code."""
    repairs = [["k", None, [3 * n, 1, "<answer>\U0001d41a"]] for n in range(MAX_REPAIRS)]
    texts = [json.dumps({**HONEST, "edits": repairs}), "[" * 2_000_000, '{"a":"' + '\\"' * 1_900_000 + '"}']
    texts.append(json.dumps({**HONEST, "text": "a" * 3_900_000 + "\U0001d41a"}, ensure_ascii=False))
    return [text.encode() for text in texts]


@pytest.mark.parametrize("n", range(4))
def test_a_reply_takes_at_most_64_mb_of_the_host(n: int) -> None:
    payload, code = hostile_replies()[n], "x=1\n" * (MAX_CODE_BYTES // 4)
    tracemalloc.start()
    try:
        with suppress(ProtocolViolation):
            parse_reply(payload, LIMITS, code)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**32 - 1))
def test_only_the_nonce_of_the_call_and_a_short_length_pass(asked: int, answered: int, length: int) -> None:
    header = HEADER.pack(answered, length)
    if asked == answered and length <= 1000:
        assert parse_header(header, nonce=asked, cap=1000) == length
    else:
        with pytest.raises(ProtocolViolation):
            parse_header(header, nonce=asked, cap=1000)


def test_an_honest_reply_passes() -> None:
    observation, frames = parse_reply(json.dumps(HONEST).encode(), LIMITS)
    assert (observation.status, frames[0][1:], observation.artefacts[0].name) == ("ok", (4, 5), "x")


@pytest.mark.parametrize(
    "change",
    [
        {"status": "killed"},
        {"images": [["x", True, 5]]},
        {"images": [["x", -1, -5]]},
        {"images": [["x", 4, 5]] * 3},
        {"images": [["x", 200, 200]]},
        {"text": "a" * 100_000},
        {"error": 5},
        {"edits": [["kind", "before"]]},
    ],
)
def test_a_field_out_of_range_is_a_violation(change: dict) -> None:
    with pytest.raises(ProtocolViolation):
        parse_reply(json.dumps({**HONEST, **change}).encode(), LIMITS)


def test_deep_json_is_a_violation() -> None:
    with pytest.raises(ProtocolViolation):
        parse_reply(b"[" * 400_000, LIMITS)


def test_a_request_holds_the_code_as_it_is() -> None:
    assert encode_request(7, "é\ud800")[HEADER.size :].decode("utf-8", "surrogatepass") == "é\ud800"


CAP = reply_cap(Limits())


@pytest.mark.parametrize(
    "unit",
    ["[", "[],", "{},", '{"":{},', '{"":[', '"",', '"\\"",', "0,", "999999,", '"\N{GRINNING FACE}",', '"\\\\",[],'],
)
@pytest.mark.parametrize("start", ["[", '{"text":"\N{GRINNING FACE}","edits":[', '{"text":"', '["\\"', ""])
def test_a_hostile_reply_takes_little_memory(start: str, unit: str) -> None:
    """What is largest: text of which one character takes four bytes, so that all of them do."""
    payload = (start.encode() + unit.encode() * (CAP // len(unit.encode())))[:CAP]
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolViolation):
            parse_reply(payload, Limits())
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_the_values_of_a_reply_are_counted_outside_of_strings_only() -> None:
    text = ',[{"\\' * 1000
    assert parse_json(json.dumps({"text": text}).encode()) == {"text": text}
    with pytest.raises(ProtocolViolation, match="more than 64 values"):
        parse_json(b'{"a":[' + b"0," * 100 + b"0]}")
