"""Somebody's row becomes what a sample needs, or a bad row that says which column held what."""

from __future__ import annotations

import base64
import math
import os
import zipfile
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from pipelines.records import TruthBox
from pipelines.records.reject_reasons import Reason, reject
from pipelines.sources import BadRow, SourceRow
from pipelines.sources.columns import Columns
from pipelines.sources.mapping import map_row

EVERYTHING = Columns(choices="choices", boxes="boxes", category="category")


@pytest.fixture
def folder(tmp_path, make_image, encoded):
    inside = tmp_path / "images"
    (inside / "deep").mkdir(parents=True)
    (inside / "sign.png").write_bytes(encoded(make_image()))
    (inside / "deep" / "sign.png").write_bytes(encoded(make_image()))
    (tmp_path / "secret.png").write_bytes(encoded(make_image(1)))
    return inside


@pytest.fixture
def mapped(folder):
    """A row with an image, a question and an answer, and what is changed about it."""

    def map_one(columns: Columns = EVERYTHING, **changes: object) -> SourceRow | BadRow:
        row = {"image": "sign.png", "question": "Which colour?", "answer": "red", **changes}
        kept = {name: value for name, value in row.items() if value is not ...}
        return map_row(kept, columns, where="streets.jsonl:7", folder=folder, license="CC0-1.0")

    return map_one


@pytest.fixture
def refused(mapped):
    def refuse(columns: Columns = EVERYTHING, **changes: object) -> BadRow:
        row = mapped(columns, **changes)
        assert isinstance(row, BadRow)
        assert row.row == "streets.jsonl:7"
        return row

    return refuse


@pytest.mark.parametrize("column", ["question", "answer"])
@pytest.mark.parametrize("value", [None, ..., [], ["a"], {}, True, False])
def test_a_text_of_another_type_names_its_column(refused, column, value):
    row = refused(**{column: value})
    assert row.reason is Reason.WRONG_TYPE
    assert row.evidence.startswith(f"column {column!r}: expected text, found ")


@pytest.mark.parametrize(("value", "text"), [(7, "7"), (2.5, "2.5"), (" x\n", "x")])
def test_a_number_is_a_text(mapped, value, text):
    row = mapped(question=value, answer=value)
    assert (row.question, row.answer) == (text, text)


# --- images


@pytest.mark.parametrize("value", [None, "", ...])
def test_a_row_whose_image_is_missing_says_so(refused, value):
    assert refused(image=value).reason is Reason.MISSING_IMAGE


def test_an_empty_list_says_that_there_is_no_image(mapped):
    assert mapped(image=[]).images == ()


def test_a_source_without_images_needs_no_column(mapped):
    assert mapped(Columns(images=None), image=...).images == ()


@pytest.mark.parametrize("value", ["none.png", "deep/none.png", "none/sign.png", "sign.png/x.png", "https://a.b/c.png"])
def test_an_image_that_is_not_there_is_missing(refused, value):
    row = refused(image=value)
    assert row.reason is Reason.MISSING_IMAGE
    assert value.rsplit("/", 1)[-1] in row.evidence


@pytest.mark.parametrize(
    "value", ["../secret.png", "deep/../../secret.png", "./../secret.png", "..", "../images/sign.png"]
)
def test_a_relative_path_that_leaves_the_folder_is_refused(refused, value):
    row = refused(image=value)
    assert row.reason is Reason.MALFORMED_ROW
    assert "leaves the folder" in row.evidence


@pytest.mark.parametrize("value", ["sign.png", "./sign.png", "deep/sign.png", "deep/../sign.png"])
def test_a_relative_path_is_below_the_folder(mapped, folder, value):
    assert mapped(image=value).images == ((folder / "sign.png").read_bytes(),)


def test_an_absolute_path_is_taken_as_it_is(mapped, folder):
    assert mapped(image=str(folder.parent / "secret.png")).images == ((folder.parent / "secret.png").read_bytes(),)


@pytest.mark.parametrize("value", [".", "deep", "/dev/zero"])
def test_what_is_no_regular_file_is_not_read(refused, value):
    row = refused(image=value)
    assert row.reason is Reason.UNREADABLE_IMAGE
    assert "is not a file" in row.evidence


def test_a_pipe_makes_nobody_wait(refused, folder):
    os.mkfifo(folder / "pipe.png")
    assert refused(image="pipe.png").reason is Reason.UNREADABLE_IMAGE


def test_a_link_in_a_circle_is_unreadable(refused, folder):
    (folder / "loop.png").symlink_to("loop.png")
    assert refused(image="loop.png").reason is Reason.UNREADABLE_IMAGE


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_unreadable(refused, folder):
    (folder / "sign.png").chmod(0)
    assert refused().evidence.endswith("Permission denied")


def test_a_file_whose_reading_is_denied_is_unreadable(refused, monkeypatch):
    def denied(_: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_bytes", denied)
    row = refused()
    assert row.reason is Reason.UNREADABLE_IMAGE
    assert row.evidence.endswith("sign.png: Permission denied")


@pytest.mark.parametrize("value", ["sign\0.png", "\ud800.png"])
def test_what_no_file_can_be_called_is_malformed(refused, value):
    assert refused(image=value).reason is Reason.MALFORMED_ROW


def test_a_name_longer_than_any_file_may_have_is_unreadable(refused):
    assert refused(image="x" * 5000).reason is Reason.UNREADABLE_IMAGE


@pytest.mark.parametrize(
    "value",
    [
        7,
        True,
        ["sign.png", 7],
        [None],
        [""],
        {},
        {"bytes": None, "path": None},
        {"bytes": 10**12},
        {"bytes": [1, 2, 300]},
        {"path": 7},
    ],
)
def test_what_is_neither_image_nor_path_is_a_wrong_type(refused, value):
    row = refused(image=value)
    assert row.reason is Reason.WRONG_TYPE
    assert "expected an image or a path" in row.evidence


@pytest.mark.parametrize("url", ["data:image/png;base64,@@@", "data:image/png;base64,abc", "data:image/png;base64,é"])
def test_a_data_url_that_is_not_base64_is_unreadable(refused, url):
    assert refused(image=url).reason is Reason.UNREADABLE_IMAGE


def test_an_image_comes_as_bytes_a_struct_a_path_or_a_data_url(mapped, folder):
    data = (folder / "sign.png").read_bytes()
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    struct, by_path = {"bytes": data, "path": "elsewhere.png"}, {"bytes": None, "path": "sign.png"}
    assert mapped(image=[data, struct, by_path, "sign.png", url]).images == (data,) * 5
    for value in (data, struct, by_path, "sign.png", url):
        assert mapped(image=value).images == (data,)


def test_an_image_without_bytes_is_left_to_intake(mapped):
    assert mapped(image=b"").images == (b"",)
    assert mapped(image={"bytes": b"", "path": None}).images == (b"",)


# --- choices and answers


@pytest.mark.parametrize("value", ["red, blue", 5, {"A": 7}, ["red", 7], ["red", None], [["red"]], True])
def test_choices_that_are_no_list_of_texts_are_a_wrong_type(refused, value):
    for answer in ("red", 0):
        row = refused(choices=value, answer=answer)
        assert row.reason is Reason.WRONG_TYPE
        assert "column 'choices': expected a list of texts" in row.evidence


@pytest.mark.parametrize("value", ["A. red; B. blue", "A.red;B.blue", "(A) red\n(B) blue", "A：red；B：blue；"])
def test_choices_may_stand_in_one_text(mapped, value):
    assert mapped(choices=value, answer="B").choices == ("A. red", "B. blue")


@pytest.mark.parametrize("value", ["A. red", "A. ; B. blue", "either A. red; B. blue", "B. blue; A. red"])
def test_a_text_that_lists_no_choices_in_order_is_a_wrong_type(refused, value):
    assert refused(choices=value, answer="B").reason is Reason.WRONG_TYPE


def test_there_are_26_letters(refused, mapped):
    assert refused(choices=["red"] * 27).reason is Reason.MALFORMED_ROW
    assert mapped(choices=["red"] * 26).choices[-1] == "Z. red"


@pytest.mark.parametrize(
    ("choices", "lettered"),
    [
        (["red", "blue"], ("A. red", "B. blue")),
        (["A. red", "B. blue"], ("A. red", "B. blue")),
        (["A. red", "blue"], ("A. A. red", "B. blue")),
        (["A.M.", "B.C."], ("A. A.M.", "B. B.C.")),
        ([], ()),
        (None, ()),
    ],
)
def test_choices_get_letters_unless_they_have_them(mapped, choices, lettered):
    assert mapped(choices=choices).choices == lettered


def test_an_index_into_the_choices_is_a_letter(mapped, refused):
    assert mapped(choices=["red", "blue"], answer=1).answer == "B"
    for wrong in (2, -1):
        row = refused(choices=["red", "blue"], answer=wrong)
        assert (row.reason, row.evidence) == (Reason.MALFORMED_ROW, f"column 'answer': choice {wrong} of 2")


def test_a_number_without_choices_is_the_answer(mapped):
    assert mapped(Columns(), answer=1).answer == "1"


# --- boxes


@pytest.mark.parametrize(
    "value",
    [
        "10, 20, 30, 40",
        7,
        True,
        math.nan,
        [1, 2, 3],
        [1, 2, 3, 4, 5],
        ["1", "2", "3", "4"],
        [1, 2, 3, None],
        [True, False, 3, 4],
        [[1, 2, 3]],
        [[1, 2, 3, 4], None],
        [{"label": "sign"}],
        {"box": [1, 2, 3]},
        {"x1": 1},
    ],
)
def test_what_is_no_box_is_a_wrong_type(refused, value):
    row = refused(boxes=value)
    assert row.reason is Reason.WRONG_TYPE
    assert "column 'boxes': expected" in row.evidence


@pytest.mark.parametrize(
    "value", [[9, 9, 1, 1], [[1, 2, 1, 4]], [math.nan, 0, 1, 1], [0, 0, math.inf, 1], [0, 0, 10**400, 1]]
)
@pytest.mark.parametrize("frame", ["corners", "fractions", "percent"])
def test_a_box_that_is_inverted_or_not_finite_is_malformed(refused, value, frame):
    row = refused(Columns(boxes="boxes", box_frame=frame), boxes=value)
    assert row.reason is Reason.MALFORMED_ROW
    assert row.evidence.startswith("column 'boxes': ")


@pytest.mark.parametrize(
    ("value", "boxes"),
    [
        ([1, 2, 3, 4], (TruthBox("", 1, 2, 3, 4),)),
        ([[1, 2, 3, 4], [5, 6, 7, 8]], (TruthBox("", 1, 2, 3, 4), TruthBox("", 5, 6, 7, 8))),
        ({"box": [1, 2, 3, 4], "label": "sign"}, (TruthBox("sign", 1, 2, 3, 4),)),
        ([{"box": [1, 2, 3, 4], "label": None}], (TruthBox("", 1, 2, 3, 4),)),
        ([1.2, 2.0, 2.8, 4.0], (TruthBox("", 1, 2, 3, 4),)),
        ([], ()),
        (None, ()),
        (..., ()),
    ],
)
def test_boxes_come_alone_in_a_list_or_with_labels(mapped, value, boxes):
    assert mapped(boxes=value).truth.boxes == boxes


@pytest.mark.parametrize(
    ("frame", "value"),
    [("xywh", [24, 16, 24, 16]), ("fractions", [0.25, 0.25, 0.5, 0.5]), ("percent", [25, 25, 50, 50])],
)
def test_boxes_of_every_frame_become_pixels(mapped, frame, value):
    row = mapped(Columns(boxes="boxes", box_frame=frame), boxes=value)
    assert row.truth.boxes == (TruthBox("", 24, 16, 48, 32),)


def test_relative_boxes_of_a_damaged_image_say_what_is_wrong_with_it(refused):
    columns = Columns(boxes="boxes", box_frame="percent")
    assert refused(columns, boxes=[0, 0, 50, 50], image=b"text").reason is Reason.UNREADABLE_IMAGE
    assert refused(columns, boxes=[0, 0, 50, 50], image=[]).reason is Reason.MISSING_IMAGE


def test_relative_boxes_are_in_the_upright_frame(mapped, make_image, encoded):
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = 6
    row = mapped(
        Columns(boxes="boxes", box_frame="fractions"),
        boxes=[0, 0, 1, 0.5],
        image=encoded(make_image(), exif=exif),
    )
    assert row.truth.boxes == (TruthBox("", 0, 0, 64, 48),)


# --- the rest


def test_a_category_may_be_absent(mapped, refused):
    assert mapped().category == mapped(category=None).category == ""
    assert mapped(category="OCR").category == "OCR"
    assert refused(category=["OCR"]).reason is Reason.WRONG_TYPE


def test_a_bad_row_shows_what_there_was(refused):
    row = refused(question=None, image=b"12345", extra={"when": date(2026, 1, 2), "deep": [{"data": b"12"}]})
    assert row.content["image"] == "5 bytes"
    assert row.content["extra"]["deep"] == [{"data": "2 bytes"}]
    assert "2026-01-02" in reject(row.reason, row.evidence, stage="samples", row=row.content).row


def test_nesting_beyond_reading_is_left_out(refused):
    nested: list[object] = []
    for _ in range(900):
        nested = [nested]
    row = refused(question=None, extra=nested)
    assert "…" in reject(row.reason, row.evidence, stage="samples", row=row.content).row


def test_a_column_that_a_mapping_cannot_have_is_an_error():
    with pytest.raises(ValidationError, match="image"):
        Columns(image="image")  # type: ignore[call-arg]


def test_every_named_column_must_be_there():
    assert Columns(images=None, row_id="id", question=("q", "chat")).needed() == [("q", "chat"), ("answer",), ("id",)]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("sign.png") | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=5) | st.dictionaries(st.sampled_from(["bytes", "path", "box", "label"]), inner)
    ),
    max_leaves=8,
)


def test_any_row_is_a_row_or_a_bad_row(folder):
    frames = st.sampled_from(["corners", "xywh", "fractions", "percent"])
    names = st.sampled_from(["image", "question", "answer", "choices", "boxes", "category"])

    @given(st.dictionaries(names, JSON), frames)
    @settings(max_examples=300)
    def check(row: dict[str, object], frame: str) -> None:
        columns = Columns(choices="choices", boxes="boxes", category="category", box_frame=frame)  # type: ignore[arg-type]
        mapped = map_row(row, columns, where="1", folder=folder, license="")
        if isinstance(mapped, BadRow):
            assert reject(mapped.reason, mapped.evidence, stage="samples", row=mapped.content).row

    check()


# --- videos

FILMED = Columns(images=None, videos="video")


def test_a_video_is_a_file_below_the_folder_or_bytes(mapped, folder):
    (folder / "walk.mp4").write_bytes(b"frames")
    assert mapped(FILMED, video="walk.mp4").videos == (b"frames",)
    assert mapped(FILMED, video=[{"bytes": b"a", "path": None}, "walk.mp4"]).videos == (b"a", b"frames")
    assert mapped(FILMED, video=[]).videos == ()


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, Reason.MISSING_VIDEO),
        ("none.mp4", Reason.MISSING_VIDEO),
        ("deep", Reason.UNREADABLE_VIDEO),
        ("data:video/mp4;base64,!", Reason.UNREADABLE_VIDEO),
        ("../walk.mp4", Reason.MALFORMED_ROW),
        (7, Reason.WRONG_TYPE),
    ],
)
def test_a_video_that_cannot_be_had_has_its_reason(refused, value, reason):
    assert refused(FILMED, video=value).reason is reason


# --- what public datasets have

NESTED = {"meta": {"image": "sign.png", "asks": {"q": "Which colour?"}}, "gt": '{"answer": "red"}'}


def test_names_go_into_structures_and_into_json_in_texts(folder):
    columns = Columns(images="meta.image", question="meta.asks.q", answer="gt.answer")
    row = map_row(NESTED, columns, where="1", folder=folder, license="")
    assert isinstance(row, SourceRow)
    assert (row.question, row.answer, len(row.images)) == ("Which colour?", "red", 1)


def test_a_name_with_a_dot_in_it_is_a_name(mapped):
    assert mapped(Columns(question="q.1"), **{"q.1": "Why?"}).question == "Why?"


@pytest.mark.parametrize("name", ["meta.none", "gt.none", "meta.image.deeper", "none.q"])
def test_what_is_not_inside_a_structure_is_nothing(folder, name):
    columns = Columns(images="meta.image", question=name, answer="gt.answer")
    row = map_row(NESTED, columns, where="1", folder=folder, license="")
    assert isinstance(row, BadRow)
    assert row.evidence == f"column {name!r}: expected text, found nothing"


@pytest.mark.parametrize(
    ("value", "is_excluded"), [("okvqa", True), ("OKVQA", False), (1, True), (True, False), ("1", False), (None, False)]
)
def test_rows_with_excluded_values_are_set_aside_with_the_value(mapped, value, is_excluded):
    columns = Columns(exclude={"data_source": ("okvqa", 1)})
    row = mapped(columns, data_source=value)
    assert isinstance(row, BadRow) is is_excluded
    if isinstance(row, BadRow):
        assert (row.reason, row.evidence) == (
            Reason.EXCLUDED,
            f"column 'data_source' is {value!r}, which the source leaves out",
        )


def test_an_excluded_column_must_be_there():
    assert ("data_source",) in Columns(exclude={"data_source": ("okvqa",)}).needed()


def test_a_row_s_licence_counts_before_its_source_s(mapped):
    columns = Columns(license="rights")
    assert mapped(columns, rights="MIT").license == "MIT"
    assert mapped(columns, rights=None).license == mapped(columns, rights="").license == "CC0-1.0"


def test_details_are_kept_as_private_knowledge(mapped):
    assert mapped().truth.details is None
    assert mapped(Columns(details=("votes", "image")), votes=[1, 0], image=[b"123"]).truth.details == (
        '{"image": ["3 bytes"], "votes": [1, 0]}'
    )


def test_a_list_may_be_spelled_as_text(mapped):
    assert len(mapped(image='["sign.png", "deep/sign.png"]').images) == 2
    assert mapped(choices="['red', 'blue']").choices == ("A. red", "B. blue")
    assert mapped(choices='{"A": "red", "B": "blue"}').choices == ("A. red", "B. blue")
    assert mapped(boxes="[[1, 2, 3, 4]]").truth.boxes == (TruthBox("", 1, 2, 3, 4),)


def test_boxes_may_be_called_as_coco_and_vstar_call_them(mapped):
    row = mapped(Columns(boxes="boxes", box_frame="xywh"), boxes=[{"name": "cup", "bbox": [1, 2, 3, 4]}])
    assert row.truth.boxes == (TruthBox("cup", 1, 2, 4, 6),)


def test_an_image_may_be_base64(mapped, refused, folder):
    data = (folder / "sign.png").read_bytes()
    text = base64.b64encode(data).decode()
    assert mapped(image=text).images == mapped(image=[text]).images == (data,)
    for broken in (text[:-1], text[:99] + "@" + text[100:]):
        row = refused(image=broken)
        assert (row.reason, row.evidence.split(":")[1]) == (
            Reason.UNREADABLE_IMAGE,
            " begins as base64 and is none",
        )


def test_a_short_path_that_begins_as_base64_is_a_path(mapped, refused, folder):
    (folder / "UklGR.png").write_bytes(b"image")
    assert mapped(image="UklGR.png").images == (b"image",)
    assert refused(image="/9j/none.png").reason is Reason.MISSING_IMAGE


def test_what_paths_begin_with_may_be_taken_off(mapped, refused):
    columns = Columns(path_prefix="train/")
    assert mapped(columns, image="train/sign.png").images == mapped(columns, image="sign.png").images
    assert refused(columns, image="train/../../secret.png").reason is Reason.MALFORMED_ROW


@pytest.fixture
def zipped(folder):
    with zipfile.ZipFile(folder / "images.zip", "w") as archive:
        archive.write(folder / "sign.png", "pictures/sign.png")
    return folder / "images.zip"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("pictures/sign.png", None),
        ("./pictures/sign.png", None),
        ("pictures/none.png", Reason.MISSING_IMAGE),
        ("../sign.png", Reason.MALFORMED_ROW),
        (7, Reason.WRONG_TYPE),
    ],
)
def test_the_folder_may_be_an_archive(zipped, folder, path, reason):
    row = map_row({"image": path, "question": "?", "answer": "!"}, Columns(), where="1", folder=zipped, license="")
    if reason is None:
        assert isinstance(row, SourceRow)
        assert row.images == ((folder / "sign.png").read_bytes(),)
    else:
        assert isinstance(row, BadRow)
        assert row.reason is reason


@pytest.mark.parametrize("damage", [b"", b"no archive", None])
def test_an_archive_that_is_damaged_or_gone_makes_bad_rows(zipped, damage):
    if damage is None:
        zipped.unlink()
    else:
        zipped.write_bytes(damage)
    row = map_row({"image": "a.png", "question": "?", "answer": "!"}, Columns(), where="1", folder=zipped, license="")
    assert isinstance(row, BadRow)
    assert row.reason is (Reason.MISSING_IMAGE if damage is None else Reason.UNREADABLE_IMAGE)


def test_an_archive_whose_content_is_damaged_makes_bad_rows(zipped):
    data = bytearray(zipped.read_bytes())
    data[80:120] = b"\0" * 40
    zipped.write_bytes(data)
    row = map_row(
        {"image": "pictures/sign.png", "question": "?", "answer": "!"}, Columns(), where="1", folder=zipped, license=""
    )
    assert isinstance(row, BadRow)
    assert row.reason is Reason.UNREADABLE_IMAGE


def test_any_row_is_a_row_or_a_bad_row_with_every_field_of_a_mapping(folder):
    everything = Columns(
        question=("question", "chat.q"),
        choices="choices",
        boxes="boxes",
        category="category",
        license="rights",
        details=("extra",),
        exclude={"category": ("x",)},
        drop_lines=("Think",),
        choices_in_question=True,
        unwrap_answer=True,
        answer_list="first",
    )
    values = JSON | st.lists(
        st.fixed_dictionaries({"role": st.sampled_from(["user", "x"]), "content": JSON}), max_size=2
    )
    texts = st.sampled_from(["A. x\nB. y", "[", "['a']", '{"a": [', "<answer>", "\\boxed{", "$", "<image>"])

    @given(
        st.dictionaries(
            st.sampled_from(["image", "question", "chat", "answer", "choices", "boxes", "category", "rights", "extra"]),
            values | texts,
        )
    )
    @settings(max_examples=300)
    def check(row: dict[str, object]) -> None:
        mapped = map_row(row, everything, where="1", folder=folder, license="")
        if isinstance(mapped, BadRow):
            assert reject(mapped.reason, mapped.evidence, stage="samples", row=mapped.content).row

    check()


# --- choices in columns of their own, and JSON beside the image

APART = Columns(choices=("A", "B", "C"))
BESIDE = Columns(boxes="beside.bbox", box_frame="xywh", json_beside=True)


def test_every_column_is_a_choice(mapped):
    row = mapped(APART, A="Red", B="Blue", C=3, answer="B")
    assert (row.choices, row.answer) == (("A. Red", "B. Blue", "C. 3"), "B")


@pytest.mark.parametrize("empty", [None, ""])
def test_an_empty_column_is_no_choice(mapped, empty):
    assert mapped(APART, A="Red", B="Blue", C=empty, answer="A").choices == ("A. Red", "B. Blue")


def test_every_column_of_choices_must_be_there():
    assert ("B",) in APART.needed()
    assert not any("beside.bbox" in group for group in BESIDE.needed())


def test_the_file_beside_an_image_tells_its_boxes(mapped, folder):
    (folder / "sign.json").write_text('{"bbox": [[1, 2, 3, 4]], "target_object": ["sign"]}')
    (box,) = mapped(BESIDE).truth.boxes
    assert tuple(box.box) == (1, 2, 4, 6)


@pytest.mark.parametrize(
    ("text", "evidence"),
    [(None, "there is no file"), ("[1]", "sign.json holds no JSON object"), ("{", "sign.json holds no JSON object")],
)
def test_a_file_beside_an_image_that_tells_nothing_is_named(refused, folder, text, evidence):
    if text is not None:
        (folder / "sign.json").write_text(text)
    row = refused(BESIDE)
    assert row.reason == Reason.MALFORMED_ROW
    assert evidence in row.evidence


def test_only_an_image_with_a_path_has_a_file_beside_it(refused, make_image, encoded):
    assert refused(BESIDE, image=encoded(make_image())).reason == Reason.WRONG_TYPE


def test_the_file_beside_an_image_stays_in_the_folder(refused, folder):
    (folder.parent / "secret.json").write_text('{"bbox": [[1, 2, 3, 4]]}')
    assert "leaves the folder" in refused(BESIDE, image="../secret.png").evidence


def test_each_of_several_columns_has_an_image_and_empty_ones_are_skipped(folder):
    columns = Columns(images=("first", "second", "third"))
    row = {"first": b"1", "second": None, "third": {"bytes": b"3", "path": None}, "question": "?", "answer": "!"}
    read = map_row(row, columns, where="1", folder=folder, license="")
    assert read.images == (b"1", b"3")
    empty = map_row({**row, "first": "", "third": None}, columns, where="1", folder=folder, license="")
    assert (empty.reason, empty.evidence) == (Reason.MISSING_IMAGE, "column 'first' or 'second' or 'third' is empty")


def test_a_path_may_be_filled_from_columns(folder):
    (folder / "set").mkdir()
    (folder / "set/7.mp4").write_bytes(b"film")
    columns = Columns(images=None, videos="{origin}/{scene.name}.mp4")
    row = {"origin": "set", "scene": {"name": "7"}, "question": "?", "answer": "!"}
    assert map_row(row, columns, where="1", folder=folder, license="").videos == (b"film",)
    assert ("origin",) in columns.needed()
    lost = map_row({**row, "origin": ""}, columns, where="1", folder=folder, license="")
    assert lost.reason is Reason.MISSING_VIDEO
    out = map_row({**row, "origin": "../.."}, columns, where="1", folder=folder, license="")
    assert (out.reason, "leaves the folder" in out.evidence) == (Reason.MALFORMED_ROW, True)
