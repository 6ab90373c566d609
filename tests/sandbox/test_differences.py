"""Edits travel as differences: the host makes the same text of them, and a hostile one is a violation."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from darkroom.sandbox import Limits, Session
from darkroom.sandbox._guest.differences import (
    MAX_CHANGED_CHARS,
    MAX_EDITS,
    DoesNotApply,
    apply_difference,
    difference,
    rows_of,
)
from darkroom.sandbox._guest.edits import SourceEdit, parse_repaired
from darkroom.sandbox.calls import Edit
from darkroom.sandbox.errors import ProtocolViolation
from darkroom.sandbox.frames import parse_reply, reply_cap

codes = st.lists(st.sampled_from(["x = 1\n", "  y\n", "\t", "```", "é", "\u2028", "\r\n", " "]), max_size=12).map(
    "".join
)


def edits_of(code: str, rows: list[list[Any]]) -> tuple[Edit, ...]:
    fields = {"status": "ok", "text": "", "error": None, "images": [], "artefacts": [], "edits": rows}
    return parse_reply(json.dumps(fields).encode(), Limits(), code)[0].edits


@given(codes, codes)
def test_a_difference_gives_the_text_back(before: str, after: str) -> None:
    assert apply_difference(before, difference(before, after)) == after


def test_a_difference_has_only_what_was_changed() -> None:
    assert difference("```\nx = 1\n```", "x = 1\n") == [0, 4, "", 6, 3, ""]
    assert difference("a = “b”\nc\n", 'a = "b"\nc\n') == [4, 3, '"b"']
    assert difference("  a\n  b\n", "a\nb\n") == [0, 2, "", 2, 2, ""]


@pytest.mark.parametrize(
    "items", [[0], [0, 0], [0, 99, ""], [99, 0, ""], [-1, 1, ""], [0, -1, ""], [True, 0, ""], [0, 0, 5], ["", "", ""]]
)
def test_a_difference_of_another_text_is_a_violation(items: list[Any]) -> None:
    with pytest.raises(DoesNotApply):
        apply_difference("code", items)
    with pytest.raises(ProtocolViolation):
        edits_of("code", [["dedent", None, items]])


def test_the_host_sees_the_edits_that_the_session_made() -> None:
    code = "<code>\n```python\n    print(“a”)\n    print(2)\n```\n</code>"
    edits = parse_repaired(code, "<cell 0>")[1]
    part = SourceEdit("clamp_box", "crop((9, 9, 0, 0))", "crop((0, 0, 9, 9))")
    rows = rows_of(code, [*edits, part])
    assert [row[1] for row in rows] == [None] * 4 + [part.before]
    seen = edits_of(code, rows)
    assert [edit.kind for edit in seen] == ["strip_tag", "strip_fence", "plain_quotes", "dedent", "clamp_box"]
    assert seen[0].before == "‹code>\n```python\n    print(“a”)\n    print(2)\n```\n‹/code>"
    assert [edit.after for edit in seen[:-1]] == [edit.after for edit in edits]


def test_what_an_edit_says_is_neutralised() -> None:
    edit = edits_of("", [["<code>", "<answer>", "[INST]"]])[0]
    assert (edit.kind, edit.before, edit.after) == ("‹code>", "‹answer>", "⁅INST]")


def test_too_many_repairs_and_too_much_text_are_a_violation() -> None:
    with pytest.raises(ProtocolViolation, match="one too many"):
        edits_of("code", [["dedent", None, []]] * 9)
    with pytest.raises(ProtocolViolation, match="too large"):
        edits_of("code", [["dedent", None, [0, 0, "x" * (MAX_CHANGED_CHARS + 1)]]])


def test_many_edits_are_counted_and_long_ones_cut() -> None:
    edits = [SourceEdit("output_folder", "'" + "x" * 5000, "b")] * (MAX_EDITS + 10)
    seen = edits_of("", rows_of("", edits))
    assert len(seen) == MAX_EDITS
    assert seen[-1] == Edit("output_folder", "", "# … and 11 more")


def test_a_repair_too_large_to_report_is_not_made() -> None:
    lines = "".join(f"x{n} = “{n}” + “{n}”\n" for n in range(5000))
    with pytest.raises(SyntaxError, match="invalid character"):
        parse_repaired(lines, "<cell 0>")


def test_a_megabyte_of_code_is_repaired_in_a_reply_of_fixed_size(session: Session) -> None:
    code = f"```python\nx = '{'-' * 1_000_000}'\nprint(len(x))\n```"
    observation = session.run(code)
    assert (observation.status, observation.text) == ("ok", "1000000\n")
    assert (observation.edits[0].before, observation.edits[0].after) == (code, code[10:-3])
    assert reply_cap(Limits()) < 5_000_000
