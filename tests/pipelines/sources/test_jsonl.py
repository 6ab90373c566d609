"""Questions in a JSON-lines file: nothing of it is lost, and every error names its line."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings, strategies as st

from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.sources import BadRow, SourceError, SourceRow
from darkroom.pipelines.sources.columns import Columns
from darkroom.pipelines.sources.ingest import ingest_shard
from darkroom.pipelines.sources.jsonl import JsonLinesSource, parsed_lines, parsed_value, rows_at
from darkroom.pipelines.sources.source_config import Join

GOOD = b'{"image": "sign.png", "question": "Which colour?", "answer": "red"}'


@pytest.fixture
def folder(tmp_path, make_image, encoded):
    inside = tmp_path / "streets"
    inside.mkdir()
    (inside / "sign.png").write_bytes(encoded(make_image()))
    return inside


@pytest.fixture
def source(folder):
    def make(lines: bytes, columns: Columns = Columns(), n_shards: int = 1) -> JsonLinesSource:  # noqa: B008
        questions = folder / "questions.jsonl"
        questions.write_bytes(lines)
        return JsonLinesSource("streets", questions, folder, columns, n_shards=n_shards, license="CC0-1.0")

    return make


def only(source: JsonLinesSource) -> SourceRow | BadRow:
    (row,) = source.rows(0)
    return row


def test_broken_json_is_named_by_file_and_line(source):
    rows = list(source(b"\n".join([*[GOOD] * 6, b'{"image": "sign.png", "quest', GOOD])).rows(0))
    assert [isinstance(row, BadRow) for row in rows] == [False] * 6 + [True, False]
    bad = rows[6]
    assert isinstance(bad, BadRow)
    assert (bad.row, bad.reason) == ("questions.jsonl:7", Reason.MALFORMED_ROW)
    assert bad.evidence.startswith("not JSON: ")
    assert bad.content == {"line": '{"image": "sign.png", "quest\n'}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"[1, 2]", "expected an object, found list"),
        (b"7", "expected an object, found int"),
        (b"null", "expected an object, found NoneType"),
        (b'"text"', "expected an object, found str"),
        (b"{'image': 1}", "not JSON"),
        (GOOD + b" trailing", "not JSON"),
        (GOOD + GOOD, "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b'{"answer": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"\0", "not JSON"),
        (b'{"question": "caf\xe9"}', "not UTF-8: invalid continuation byte at byte 18 of the line"),
    ],
)
def test_a_line_that_is_no_object_is_malformed(source, line, said):
    row = only(source(line))
    assert isinstance(row, BadRow)
    assert row.reason is Reason.MALFORMED_ROW
    assert said in row.evidence


def test_a_mapping_of_a_column_that_is_not_there_says_which_there_are(source):
    columns = Columns(question="query", boxes="bbox")
    with pytest.raises(SourceError, match=r"no column 'query', 'bbox'; it has 'answer', 'image', 'question'"):
        list(source(GOOD, columns).rows(0))


def test_a_file_that_begins_with_a_byte_order_mark_is_checked_too(source):
    with pytest.raises(SourceError, match="no column 'query'"):
        list(source(b"\xef\xbb\xbf" + GOOD, Columns(question="query")).rows(0))


def test_a_column_that_only_some_rows_have_is_no_error(source):
    with_box = GOOD[:-1] + b', "boxes": [1, 2, 3, 4]}'
    rows = list(source(GOOD + b"\n" + with_box, Columns(boxes="boxes")).rows(0))
    assert [row.boxes is not None for row in rows if isinstance(row, SourceRow)] == [False, True]


@pytest.mark.parametrize("lines", [b"", b"\n\n", b"  \t\r\n \n"])
def test_a_file_without_questions_has_no_rows(source, lines):
    assert list(source(lines).rows(0)) == []


def test_blank_lines_are_nothing_but_are_counted(source):
    assert [row.row for row in source(b"\n\n" + GOOD + b"\n \n" + GOOD).rows(0)] == [
        "questions.jsonl:3",
        "questions.jsonl:5",
    ]


@pytest.mark.parametrize("lines", [b"\xef\xbb\xbf" + GOOD + b"\n", GOOD + b"\r\n", GOOD, b"  " + GOOD + b"  \n"])
def test_marks_and_line_ends_of_other_systems_are_read(source, folder, lines):
    row = only(source(lines))
    assert row == SourceRow(
        "questions.jsonl:1",
        ((folder / "sign.png").read_bytes(),),
        "Which colour?",
        "red",
        license="CC0-1.0",
        files=("sign.png",),
    )


def test_a_line_separator_inside_a_text_does_not_end_the_line(source):
    row = only(source('{"image": "sign.png", "question": "a\u2028b\x85c", "answer": "x"}'.encode()))
    assert isinstance(row, SourceRow)
    assert row.question == "a\u2028b\x85c"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"image": "none.png"}, "missing_image"),
        ({"image": None}, "missing_image"),
        ({"image": "../questions.jsonl"}, "malformed_row"),
        ({"image": "."}, "unreadable_image"),
        ({"image": "questions.jsonl"}, "unreadable_image"),
        ({"question": ["Which?"]}, "wrong_type"),
        ({"question": None}, "wrong_type"),
        ({"question": "\ud800"}, "malformed_row"),
        ({"answer": ""}, "malformed_row"),
        ({"choices": "red or blue"}, "wrong_type"),
        ({"choices": ["green", "blue"]}, "malformed_row"),
        ({"boxes": [[1, 2, 3]]}, "wrong_type"),
        ({"boxes": ["1", "2", "3", "4"]}, "wrong_type"),
        ({"boxes": [float("nan"), 2, 3, 4]}, "malformed_row"),
        ({"boxes": [9, 9, 1, 1]}, "malformed_row"),
        ({"boxes": [1, 2, 300, 400]}, "box_outside_image"),
        ({}, "duplicate"),
    ],
)
def test_every_error_of_a_line_is_a_typed_reject(source, store, change, reason):
    columns = Columns(choices="choices", boxes="boxes")
    good = {**json.loads(GOOD), "choices": ["red", "blue"], "boxes": [40, 30, 90, 60]}
    lines = [good, {**good, **change}, {**good, "question": "Another?"}]
    taken = ingest_shard(source("\n".join(map(json.dumps, lines)).encode(), columns), 0, store)
    assert [sample.source_row for sample in taken.samples] == ["questions.jsonl:1", "questions.jsonl:3"]
    (rejected,) = taken.rejects
    assert (rejected.reason, rejected.source_row) == (reason, "questions.jsonl:2")
    assert rejected.evidence


@pytest.mark.parametrize("missing", ["questions", "folder"])
def test_files_that_are_not_there_are_a_source_error(folder, missing):
    questions = folder / "questions.jsonl"
    if missing == "folder":
        questions.write_bytes(GOOD)
        folder = folder / "none"
    with pytest.raises(SourceError, match=r"there is no (file|folder) .*(questions\.jsonl|none)"):
        JsonLinesSource("streets", questions, folder, Columns())


@given(st.integers(1, 7), st.lists(st.sampled_from([GOOD, b"", b"{"]), max_size=20))
@settings(max_examples=40)
def test_the_shards_partition_the_lines(n_shards, lines):
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "questions.jsonl").write_bytes(b"\n".join(lines))
        sources = [
            JsonLinesSource("s", folder / "questions.jsonl", folder, Columns(), n_shards=n) for n in (1, n_shards)
        ]
        whole = [row.row for row in sources[0].rows(0)]
        shards = [[row.row for row in sources[1].rows(shard)] for shard in range(n_shards)]
    assert sorted(whole) == sorted(row for shard in shards for row in shard)
    assert all(shard == sorted(shard, key=whole.index) for shard in shards)


@given(
    st.lists(st.one_of(st.binary(max_size=30), st.sampled_from([GOOD, b"{}", b"\xef\xbb\xbf{}", b"[]"])), max_size=8)
)
@example([b"\xef\xbb\xbf", b"\xff\xfe{\0}\0"])
@settings(max_examples=100)
def test_every_line_that_is_not_blank_is_a_row_or_a_bad_row(lines):
    text = b"\n".join(lines)
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "questions.jsonl").write_bytes(text)
        source = JsonLinesSource("s", folder / "questions.jsonl", folder, Columns(images=None))
        try:
            rows = list(source.rows(0))
        except SourceError:
            assert b"{" in text
            return
    numbers = [number for number, line in enumerate(text.split(b"\n"), 1) if line.strip()]
    assert [row.row for row in rows] == [f"questions.jsonl:{number}" for number in numbers]


def test_the_fingerprint_follows_questions_images_and_mapping(source, folder):
    seen = [source(GOOD).fingerprint, source(GOOD, n_shards=2).fingerprint, source(GOOD + b"\n").fingerprint]
    (folder / "another.png").write_bytes(b"")
    seen += [source(GOOD).fingerprint, source(GOOD, Columns(category="c")).fingerprint]
    assert len(set(seen)) == 5
    same = source(GOOD)
    assert same.fingerprint == same.fingerprint


# --- lists, and several files


def test_a_json_file_holds_a_list_of_rows(folder):
    (folder / "train.json").write_bytes(b"\xef\xbb\xbf[" + GOOD + b", 7, " + GOOD + b"]")
    rows = list(JsonLinesSource("streets", folder / "train.json", folder, Columns()).rows(0))
    assert [row.row for row in rows] == ["train.json:1", "train.json:2", "train.json:3"]
    assert [isinstance(row, BadRow) for row in rows] == [False, True, False]


@pytest.mark.parametrize("content", [b"{}", b"7", b"[", b"\xff", b""])
def test_a_json_file_of_something_else_is_an_error_that_names_it(folder, content):
    (folder / "train.json").write_bytes(content)
    with pytest.raises(SourceError, match=r"train\.json: expected one list of rows in a \.json file"):
        list(JsonLinesSource("streets", folder / "train.json", folder, Columns()).rows(0))


def test_several_files_are_one_source_and_each_row_names_its_own(folder):
    for name in ("a.jsonl", "b.jsonl"):
        (folder / name).write_bytes(GOOD + b"\n" + GOOD)
    source = JsonLinesSource("streets", [folder / "a.jsonl", folder / "b.jsonl"], folder, Columns(), n_shards=2)
    assert [[row.row for row in source.rows(shard)] for shard in (0, 1)] == [
        ["a.jsonl:2", "b.jsonl:2"],
        ["a.jsonl:1", "b.jsonl:1"],
    ]
    (folder / "b.jsonl").write_bytes(b'{"image": "sign.png", "query": "?"}')
    with pytest.raises(SourceError, match=r"b\.jsonl has no column 'question', 'answer'; it has 'image', 'query'"):
        list(source.rows(0))


def test_a_nested_column_that_is_not_there_names_what_the_structure_has(source):
    nested = b'{"image": "sign.png", "question": "?", "gt": {"text": "red"}, "meta": "{}"}'
    with pytest.raises(
        SourceError, match=r"no column 'gt.answer'; it has 'gt', 'gt.text', 'image', 'meta', 'question'"
    ):
        source(nested, Columns(answer="gt.answer")).check()
    source(nested, Columns(answer="meta.answer")).check()


def test_a_number_that_no_number_holds_is_named():
    assert parsed_value(b'{"answer": 1e400}') == (
        None,
        "not JSON: 1e400 is beyond any number that can be compared",
    )
    assert parsed_value(b'{"answer": Infinity}') == ({"answer": math.inf}, "")


# --- spellings of a file


TWO = b"[" + GOOD + b",\n " + GOOD.replace(b"Which", b"What") + b"]"


@pytest.mark.parametrize(
    "content",
    [
        TWO,
        b"\xef\xbb\xbf\n" + TWO,
        json.dumps(json.loads(TWO), indent=2).encode(),
        b"\n".join(json.dumps(row, indent=2).encode() for row in json.loads(TWO)),
        b"\n".join(json.dumps(row).encode() for row in json.loads(TWO)).decode().encode("utf-16"),
        gzip.compress(b"\n".join(json.dumps(row).encode() for row in json.loads(TWO)), mtime=0),
        gzip.compress(TWO.decode().encode("utf-32"), mtime=0),
    ],
)
def test_a_list_objects_over_several_lines_utf_16_and_gzip_are_read(source, content):
    rows = list(source(content).rows(0))
    assert [getattr(row, "question", row) for row in rows] == ["Which colour?", "What colour?"]


@pytest.mark.parametrize("content", [gzip.compress(GOOD, mtime=0)[:-9], b"\xff\xfe\x00\xd8"])
def test_a_file_that_cannot_be_unpacked_is_one_error(source, content):
    with pytest.raises(SourceError, match=r"questions\.jsonl cannot be read"):
        list(source(content).rows(0))


def test_a_document_with_an_object_at_the_top_names_its_list(folder):
    (folder / "train.json").write_bytes(b'{"version": 1, "data": [' + GOOD + b"]}")
    with pytest.raises(SourceError, match=r"found dict\. `rows: data` in the source's file takes those"):
        list(JsonLinesSource("streets", folder / "train.json", folder, Columns()).rows(0))


@pytest.mark.parametrize(
    ("value", "keys", "rows"),
    [
        ({"data": [{"a": 1}]}, "data", [{"a": 1}]),
        ({"x": {"a": 1}, "y": {"a": 2}}, "*", [{"key": "x", "a": 1}, {"key": "y", "a": 2}]),
        ([{"id": 7, "qas": [{"a": 1}, {"a": 2, "id": 8}]}], "*.qas", [{"id": 7, "a": 1}, {"id": 8, "a": 2}]),
        ({"data": [{"id": 7, "qas": [{"a": 1}]}]}, "data.qas", [{"id": 7, "a": 1}]),
    ],
)
def test_rows_may_lie_inside_a_document(value, keys, rows):
    assert rows_at(value, keys, Path("a.json")) == rows


def test_rows_that_are_nowhere_are_an_error():
    with pytest.raises(SourceError, match=r"a\.json: there are no rows at 'data'"):
        rows_at({"other": []}, "data", Path("a.json"))


def test_answers_may_lie_in_a_second_file(folder):
    (folder / "q.json").write_text('{"questions": [{"id": 1, "image": "sign.png", "question": "?"}, {"id": 2}, 3]}')
    (folder / "a.json").write_text('[{"id": 1, "answer": "red", "question": "not this"}, {"answer": "lost"}, 4]')
    join = Join(file="a.json", on="id")
    rows = [row for _, row, _ in parsed_lines(folder / "q.json", rows="questions", join=join)]
    assert rows == [{"id": 1, "image": "sign.png", "question": "?", "answer": "red"}, {"id": 2}, 3]
    with pytest.raises(SourceError, match=r"none\.json cannot be read"):
        list(parsed_lines(folder / "q.json", rows="questions", join=Join(file="none.json", on="id")))


def test_a_number_beyond_all_is_no_value_in_a_printed_list_either(source):
    rows = list(source(b'[\n{"image": "sign.png", "question": "?", "answer": 1e400}\n]').rows(0))
    assert {row.reason for row in rows if isinstance(row, BadRow)} == {Reason.MALFORMED_ROW}
