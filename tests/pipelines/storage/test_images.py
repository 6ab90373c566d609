"""The image store: every image once, whole or not at all, as the bytes it came in."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

import pytest
from PIL import Image

from darkroom.pipelines.records.digest import digest_bytes
from darkroom.pipelines.records.reject_reasons import Reason, RowError
from darkroom.pipelines.storage.images import ImageMissing, ImageStore


def files(store: ImageStore) -> list[Path]:
    return [path for path in Path(store.url).rglob("*") if path.is_file()]


def test_what_is_refused_is_not_stored(store):
    with pytest.raises(RowError) as caught:
        store.ingest(b"not an image")
    assert caught.value.reason is Reason.UNREADABLE_IMAGE
    assert files(store) == []


def test_a_plain_image_is_kept_as_the_bytes_it_came_in(store, make_image, encoded):
    data = encoded(make_image(), "JPEG")
    ref = store.ingest(data)
    assert store.read(ref) == data
    assert (ref.sha256, ref.format, ref.parent, ref.made_by) == (digest_bytes(data), "JPEG", None, None)


def test_the_same_bytes_are_stored_once(store, make_image, encoded):
    data = encoded(make_image(), "JPEG")
    assert store.ingest(data) == store.ingest(data)
    assert len(files(store)) == 1


def test_who_opens_an_image_may_change_the_pixels(store, make_image, encoded):
    ref = store.ingest(encoded(make_image(), "PNG"))
    before = store.open(ref).tobytes()
    store.open(ref).paste(0, (0, 0, 10, 10))
    assert store.open(ref).tobytes() == before


def test_a_rotated_photograph_is_derived_upright_and_its_original_kept(store, make_image, encoded):
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(make_image(), "JPEG", exif=exif)
    ref = store.ingest(data)
    assert (ref.width, ref.height) == (64, 96) == store.open(ref).size
    assert ref.parent == digest_bytes(data)
    assert ref.made_by == "ingest: exif_orientation"
    assert store.read(ref.parent) == data
    assert not store.open(ref).getexif()


@pytest.mark.parametrize("mode", ["P", "1", "CMYK"])
def test_derived_images_name_their_parent(store, make_image, encoded, mode):
    data = encoded(make_image(mode=mode), "TIFF")
    ref = store.ingest(data)
    assert (ref.parent, ref.format) == (digest_bytes(data), "PNG")
    assert store.read(ref.parent) == data
    assert store.open(ref).mode == ref.mode


def test_equal_pixels_give_equal_bytes(store, make_image):
    noted = make_image()
    noted.info["comment"] = "metadata"
    assert store.add_pixels(make_image()) == store.add_pixels(noted)


def test_other_pixels_give_another_image(store, make_image):
    assert store.add_pixels(make_image(0)).sha256 != store.add_pixels(make_image(1)).sha256


def test_pixels_in_a_palette_keep_their_colours(store):
    image = Image.new("RGB", (4, 4), (200, 30, 10)).convert("P", palette=Image.Palette.ADAPTIVE)
    ref = store.add_pixels(image)
    assert (ref.mode, store.open(ref).mode) == ("RGB", "RGB")
    assert store.open(ref).getpixel((0, 0)) == (200, 30, 10)


def test_a_ref_has_the_size_and_mode_of_what_is_opened(store, make_image):
    for mode in ("L", "RGB", "RGBA"):
        ref = store.add_pixels(make_image(mode=mode), parent="p", made_by="m")
        opened = store.open(ref)
        assert (opened.size, opened.mode, ref.parent, ref.made_by) == ((96, 64), mode, "p", "m")


def test_an_image_that_is_not_there_says_what_to_do(store):
    with pytest.raises(ImageMissing, match="not in the image store; restore it, or delete its rows' table"):
        store.read("0" * 64)


def test_a_file_that_was_changed_on_disk_is_noticed(store, make_image, encoded):
    ref = store.ingest(encoded(make_image()))
    (path,) = files(store)
    path.write_bytes(encoded(make_image(1)))
    with pytest.raises(ImageMissing, match="was changed"):
        store.open(ref)


def test_a_write_that_was_killed_half_way_is_not_seen(store, make_image, encoded, monkeypatch):
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    data = encoded(make_image())
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            store.ingest(data)
    with pytest.raises(ImageMissing):
        store.read(digest_bytes(data))
    assert store.read(store.ingest(data)) == data


def test_a_second_store_on_the_same_folder_sees_the_images(store, make_image, encoded):
    ref = store.ingest(encoded(make_image()))
    assert ImageStore(f"file://{store.url}").open(ref).size == (96, 64)


def test_any_fsspec_url_will_do(make_image, encoded):
    url = f"memory://{uuid4().hex}/images"
    ref = ImageStore(url).ingest(encoded(make_image(mode="P")))
    assert ImageStore(url).open(ref).mode == "RGB"
    assert ImageStore(url).read(str(ref.parent)) == encoded(make_image(mode="P"))
    with pytest.raises(ImageMissing):
        ImageStore(url).read("0" * 64)


def test_an_image_larger_than_pillow_warns_of_can_be_opened(store, monkeypatch, make_image, encoded):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 4000)
    assert store.open(store.ingest(encoded(make_image()))).size == (96, 64)


def test_the_origin_of_an_image_can_be_named(store, make_image):
    ref = store.add_pixels(make_image(), parent="p" * 64, made_by="code")
    assert (ref.parent, ref.made_by) == ("p" * 64, "code")
