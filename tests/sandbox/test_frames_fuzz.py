"""Replies that are arbitrary, nearly right, or right: a ProtocolViolation or exactly what was sent, nothing else."""

import contextlib
import json
import unicodedata
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st

from darkroom.sandbox import Limits
from darkroom.sandbox.calls import STATUSES, Observation
from darkroom.sandbox.errors import ProtocolViolation
from darkroom.sandbox.frames import HEADER, MAX_CODE_BYTES, Frame, parse_header, parse_json, parse_reply

LIMITS = Limits(max_images=3, max_pixels=10_000, files=4, output_chars=200)
GUEST_STATUSES = sorted(STATUSES - {"killed", "protocol"})
N_EXAMPLES = settings().max_examples
"""Of the profile that is loaded: `make fuzz` has one of its own."""
N_TEXT = 2 * LIMITS.output_chars + 256

# what a reply may hold as it is: no NUL, no lone surrogate, nothing that looks like a tag
plain = st.characters(exclude_categories=["Cs"], exclude_characters="\0<")


def text(most: int) -> st.SearchStrategy[str]:
    return st.text(plain, max_size=min(most, 30))


# relative paths to somewhere below
visible = st.characters(exclude_categories=["Cs", "Cc", "Cf", "Cn", "Zl", "Zp"], exclude_characters="<./＜﹤")
names = st.lists(st.text(visible, min_size=1, max_size=8), max_size=4).map("/".join)


def rows(*cells: st.SearchStrategy[Any], most: int) -> st.SearchStrategy[list[list[Any]]]:
    return st.lists(st.tuples(*cells).map(list), max_size=most)


replies = st.fixed_dictionaries(
    {
        "status": st.sampled_from(GUEST_STATUSES),
        "text": text(N_TEXT),
        "error": st.none() | text(4096),
        "edits": rows(text(32), text(MAX_CODE_BYTES), text(MAX_CODE_BYTES), most=8),
        "images": rows(names, st.integers(1, 100), st.integers(1, 100), most=3),
        "artefacts": rows(names, st.integers(0, 1 << 62), st.text(visible, max_size=30), most=4),
    }
)
junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["ok", "killed", "\0", "\ud800", "a" * 5000]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=6,
)


def is_within_limits(observation: Observation, frames: tuple[Frame, ...]) -> bool:
    return (
        observation.status in GUEST_STATUSES
        and len(observation.text) <= N_TEXT
        and len(observation.error or "") <= 4096
        and len(frames) <= LIMITS.max_images
        and sum(3 * frame.width * frame.height for frame in frames) <= LIMITS.reply_mb << 20
        and all(0 < frame.width * frame.height <= LIMITS.max_pixels for frame in frames)
        and len(observation.artefacts) <= LIMITS.files
        and all(0 <= artefact.n_bytes <= 1 << 62 for artefact in observation.artefacts)
        and all(leads_below(row.name) for row in (*frames, *observation.artefacts))
        and all(
            "\0" not in said and said.encode()
            for said in (
                *(edit.kind + "." for edit in observation.edits),
                f"{observation.text}.",
                f"{observation.error}.",
            )
        )
    )


def leads_below(name: str) -> bool:
    return not name.startswith("/") and ".." not in name.split("/") and "Cc" not in map(unicodedata.category, name)


def parse_if_it_is_a_reply(payload: bytes) -> None:
    with contextlib.suppress(ProtocolViolation):
        assert is_within_limits(*parse_reply(payload, LIMITS))


def as_sent(observation: Observation, frames: tuple[Frame, ...]) -> dict[str, Any]:
    return {
        "status": observation.status,
        "text": observation.text,
        "error": observation.error,
        "edits": [[edit.kind, edit.before, edit.after] for edit in observation.edits],
        "images": [list(frame) for frame in frames],
        "artefacts": [[artefact.name, artefact.n_bytes, artefact.note] for artefact in observation.artefacts],
    }


@settings(deadline=None)
@given(replies, st.booleans())
def test_a_valid_reply_arrives_as_it_was_sent(reply: dict[str, Any], is_ascii: bool) -> None:
    payload = json.dumps(reply, ensure_ascii=is_ascii).encode()
    assert as_sent(*parse_reply(payload, LIMITS)) == reply
    assert parse_reply(bytearray(payload), LIMITS) == parse_reply(payload, LIMITS)


@settings(deadline=None)
@given(replies)
def test_what_a_reply_says_beyond_its_fields_is_not_read(reply: dict[str, Any]) -> None:
    assert as_sent(*parse_reply(json.dumps(reply | {"seconds": 0, "": []}).encode(), LIMITS)) == reply


@settings(deadline=None, max_examples=3 * N_EXAMPLES)
@given(replies, st.data())
def test_changed_bytes_are_a_violation_or_a_reply_within_the_limits(reply: dict[str, Any], data: st.DataObject) -> None:
    payload = bytearray(json.dumps(reply).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(payload)))
        payload[start : start + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
    parse_if_it_is_a_reply(bytes(payload))


@settings(deadline=None, max_examples=3 * N_EXAMPLES)
@given(replies, st.data())
def test_changed_values_are_a_violation_or_a_reply_within_the_limits(
    reply: dict[str, Any], data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(reply)))
    changed = reply[name]
    if isinstance(changed, list) and changed and data.draw(st.booleans()):
        row = data.draw(st.sampled_from(changed))
        row[data.draw(st.integers(0, 2))] = data.draw(junk)
    else:
        reply[name] = data.draw(junk)
    parse_if_it_is_a_reply(json.dumps(reply).encode("utf-8", "surrogatepass"))


@settings(deadline=None)
@given(replies, st.sampled_from(["status", "text", "edits", "images", "artefacts"]))
def test_a_reply_without_a_field_is_a_violation(reply: dict[str, Any], name: str) -> None:
    del reply[name]
    with pytest.raises(ProtocolViolation):
        parse_reply(json.dumps(reply).encode(), LIMITS)


@settings(deadline=None, max_examples=2 * N_EXAMPLES)
@given(st.binary(max_size=200))
@example(b"9" * 5000)
@example(b"[" * 100_000)
@example(b'{"a":' * 100_000)
@example(b'"\\ud800"')
@example(b"\xff\xfe{\x00}\x00")
@example(b"\x00\x00\x00{\x00\x00\x00")
@example(b"\xef\xbb\xbf{}")
@example(b"NaN")
def test_any_bytes_are_a_violation_or_an_object(payload: bytes) -> None:
    with contextlib.suppress(ProtocolViolation):
        assert isinstance(parse_json(payload), dict)
    parse_if_it_is_a_reply(payload)


@settings(deadline=None, max_examples=2 * N_EXAMPLES)
@given(st.binary(max_size=20) | st.binary(min_size=HEADER.size, max_size=HEADER.size), st.integers(0, 2**64 - 1))
def test_any_header_is_a_violation_or_a_length_within_the_cap(header: bytes, nonce: int) -> None:
    for asked in (nonce, int.from_bytes(header[:8], "little")):
        with contextlib.suppress(ProtocolViolation):
            assert 0 <= parse_header(header, nonce=asked, cap=1000) <= 1000
