"""Images and videos of a user's row: from a file below the folder, an archive, bytes or text, or a bad row."""

from __future__ import annotations

import base64
import os
import zipfile

import pytest

from darkroom.pipelines.records.reject_reasons import Reason
from darkroom.pipelines.sources import BadRow, SourceRow
from darkroom.pipelines.sources.columns import Columns
from darkroom.pipelines.sources.mapping import map_row

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
        archive.write(folder / "sign.png", "images/sign.png")
    return folder / "images.zip"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("images/sign.png", None),
        ("./images/sign.png", None),
        ("images/none.png", Reason.MISSING_IMAGE),
        ("../sign.png", Reason.MALFORMED_ROW),
        (7, Reason.WRONG_TYPE),
    ],
)
def test_the_folder_may_be_an_archive(zipped, folder, path, reason):
    (row,) = map_row({"image": path, "question": "?", "answer": "!"}, Columns(), where="1", folder=zipped, license="")
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
    (row,) = map_row(
        {"image": "a.png", "question": "?", "answer": "!"}, Columns(), where="1", folder=zipped, license=""
    )
    assert isinstance(row, BadRow)
    assert row.reason is (Reason.MISSING_IMAGE if damage is None else Reason.UNREADABLE_IMAGE)


def test_an_archive_whose_content_is_damaged_makes_bad_rows(zipped):
    data = bytearray(zipped.read_bytes())
    data[80:120] = b"\0" * 40
    zipped.write_bytes(data)
    (row,) = map_row(
        {"image": "images/sign.png", "question": "?", "answer": "!"}, Columns(), where="1", folder=zipped, license=""
    )
    assert isinstance(row, BadRow)
    assert row.reason is Reason.UNREADABLE_IMAGE


def test_each_of_several_columns_has_an_image_and_empty_ones_are_skipped(folder):
    columns = Columns(images=("first", "second", "third"))
    row = {"first": b"1", "second": None, "third": {"bytes": b"3", "path": None}, "question": "?", "answer": "!"}
    (read,) = map_row(row, columns, where="1", folder=folder, license="")
    assert read.images == (b"1", b"3")
    (empty,) = map_row({**row, "first": "", "third": None}, columns, where="1", folder=folder, license="")
    assert (empty.reason, empty.evidence) == (Reason.MISSING_IMAGE, "column 'first' or 'second' or 'third' is empty")


def test_a_path_may_be_filled_from_columns(folder):
    (folder / "set").mkdir()
    (folder / "set/7.mp4").write_bytes(b"film")
    columns = Columns(images=None, videos="{origin}/{scene.name}.mp4")
    row = {"origin": "set", "scene": {"name": "7"}, "question": "?", "answer": "!"}
    assert next(map_row(row, columns, where="1", folder=folder, license="")).videos == (b"film",)
    assert ("origin",) in columns.needed()
    (lost,) = map_row({**row, "origin": ""}, columns, where="1", folder=folder, license="")
    assert lost.reason is Reason.MISSING_VIDEO
    (out,) = map_row({**row, "origin": "../.."}, columns, where="1", folder=folder, license="")
    assert (out.reason, "leaves the folder" in out.evidence) == (Reason.MALFORMED_ROW, True)


# --- spellings


@pytest.mark.parametrize(
    "spell",
    [
        lambda data: base64.encodebytes(data).decode(),
        lambda data: base64.urlsafe_b64encode(data).decode().rstrip("="),
        lambda data: {"url": f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"},
        lambda data: {"image_url": {"url": f"data:image/jpeg;base64,{base64.b64encode(data).decode()}"}},
        lambda data: {"type": "base64", "media_type": "image/jpeg", "data": base64.b64encode(data).decode()},
    ],
)
def test_base64_may_be_mimes_urls_or_inside_an_object(mapped, make_image, encoded, spell):
    for seed in range(4):
        data = encoded(make_image(seed), "JPEG")
        assert mapped(image=spell(data)).images == (data,)


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("Café 1.png", "Cafe\u0301 1.png"),
        ("Cafe\u0301.png", "Café.png"),
        ("a street.png", "a%20street.png"),
        ("a%20street.png", "a%20street.png"),
        ("deep/1.png", "deep\\1.png"),
        ("deep/1.png", "/data/local-files/?d=deep/1.png"),
        ("a?b.png", "a?b.png"),
    ],
)
def test_a_path_may_be_spelled_as_other_systems_do(mapped, folder, name, spelling):
    (folder / name).write_bytes(b"image")
    assert mapped(image=spelling).images == (b"image",)
    with zipfile.ZipFile(folder / "images.zip", "w") as archive:
        archive.write(folder / name, name)
    row = {"image": spelling, "question": "?", "answer": "!"}
    (from_zip,) = map_row(row, Columns(), where="1", folder=folder / "images.zip", license="")
    assert isinstance(from_zip, SourceRow)
    assert from_zip.images == (b"image",)


@pytest.mark.parametrize("path", ["%2e%2e/secret.png", "..\\secret.png", "/files/?d=../secret.png"])
def test_no_spelling_leaves_the_folder(refused, path):
    assert refused(image=path).reason is Reason.MALFORMED_ROW


@pytest.mark.parametrize("url", ["http://127.0.0.1/a.jpg", "https://example.org/a.jpg", "s3://bucket/a.jpg"])
def test_nothing_is_fetched_and_the_reject_says_so(refused, url):
    row = refused(image=url)
    assert (row.reason, "nothing is fetched: download the files" in row.evidence) == (Reason.MISSING_IMAGE, True)
    assert refused(image={"url": url}).reason is Reason.MISSING_IMAGE


def test_a_file_url_is_a_path(mapped, folder):
    assert mapped(image=(folder / "sign.png").as_uri()).images == ((folder / "sign.png").read_bytes(),)


def test_rows_without_an_image_are_text_where_the_mapping_says_so(mapped, refused):
    assert mapped(Columns(text_rows=True), image=None).images == ()
    assert mapped(Columns(text_rows=True), image=...).images == ()
    assert refused(Columns(), image=None).reason is Reason.MISSING_IMAGE
    assert refused(Columns(text_rows=True), image="none.png").reason is Reason.MISSING_IMAGE
