"""Images of the questions that are being worked on stay in memory, bounded in bytes."""

import pytest
from PIL import Image

from darkroom.pipelines.records.reject_reasons import RowError
from darkroom.pipelines.storage import images
from darkroom.pipelines.storage.images import ImageMissing, ImageStore
from darkroom.train.agent.answers import RecentImages
from tests.image_files import encoded


@pytest.fixture
def store(tmp_path):
    return ImageStore(str(tmp_path))


def test_what_was_stored_last_is_read_from_memory(store, tmp_path):
    recent = RecentImages(store)
    ref = recent.add_pixels(Image.new("RGB", (30, 20), "red"))
    stored = store.read(ref)
    (tmp_path / ref.sha256[:2] / ref.sha256).unlink()
    assert recent.read(ref) == recent.read(ref.sha256) == stored
    with pytest.raises(ImageMissing):
        store.read(ref)


def test_beyond_the_bound_the_oldest_are_read_from_the_store(store, tmp_path):
    images = [Image.new("RGB", (30, 20), (seed, 0, 0)) for seed in range(3)]
    sizes = [len(store.read(store.add_pixels(image))) for image in images]
    recent = RecentImages(store, most_bytes=sum(sizes[1:]))
    refs = [recent.add_pixels(image) for image in images]
    assert [recent.read(ref) for ref in refs] == [store.read(ref) for ref in refs]
    for ref in refs:
        (tmp_path / ref.sha256[:2] / ref.sha256).unlink()
    with pytest.raises(ImageMissing):
        recent.read(refs[0])
    assert all(recent.read(ref) for ref in refs[1:])


@pytest.fixture
def n_decoded(monkeypatch):
    decoded, probe = [], images.probe

    def counted(data, **options):
        decoded.append(data)
        return probe(data, **options)

    monkeypatch.setattr(images, "probe", counted)
    return lambda: len(decoded)


def test_an_image_is_decoded_once_and_is_in_the_store_again_after_it_was_lost(store, tmp_path, n_decoded):
    recent, data = RecentImages(store), encoded(Image.new("RGB", (30, 20), "red"), "JPEG")
    first = recent.ingest(data)
    (tmp_path / first.sha256[:2] / first.sha256).unlink()
    assert recent.ingest(bytes(bytearray(data))) == first == store.ingest(data)
    assert (n_decoded(), store.read(first)) == (2, data)  # of these the store's own is one


def test_files_that_end_alike_are_others_and_each_limit_is_kept(store, n_decoded):
    recent = RecentImages(store)
    first, second = (bytes([number]) * 3 + bytes(range(64)) for number in (1, 2))
    red = encoded(Image.new("RGB", (30, 20), "red"), "JPEG")
    assert recent.ingest(red + first).sha256 != recent.ingest(red + second).sha256
    with pytest.raises(RowError, match="the limit is 100"):
        recent.ingest(red + first, max_pixels=100)
    assert n_decoded() == 3


def test_what_is_derived_is_derived_again(store, n_decoded):
    recent, palette = RecentImages(store), encoded(Image.new("P", (30, 20), 3))
    assert recent.ingest(palette) == recent.ingest(palette) == store.ingest(palette)
    assert n_decoded() == 3


def test_what_is_not_kept_any_more_is_decoded_again(store, n_decoded):
    files = [encoded(Image.new("RGB", (30, 20), (100 * seed, 0, 0)), "JPEG") for seed in range(2)]
    recent = RecentImages(store, most_bytes=max(map(len, files)))
    refs = [recent.ingest(file) for file in (*files, *files)]
    assert refs[:2] == refs[2:]
    assert n_decoded() == 4


def test_a_plain_png_is_taken_in_undecoded(store, n_decoded):
    recent, png = RecentImages(store), encoded(Image.new("RGB", (30, 20), (1, 2, 3)))
    ref = recent.ingest(png)
    assert n_decoded() == 0
    assert ref == store.ingest(png)
    assert recent.read(ref) == png
    with pytest.raises(RowError, match="the limit is 100"):
        recent.ingest(png, max_pixels=100)


def test_a_transparent_png_is_laid_on_white_as_in_every_store(store):
    image = Image.new("RGBA", (30, 20), (200, 30, 10, 255))
    image.paste((0, 0, 0, 0), (0, 0, 15, 20))
    recent, png = RecentImages(store), encoded(image)
    ref = recent.ingest(png)
    assert ref == store.ingest(png)
    assert (ref.mode, recent.read(ref) != png) == ("RGB", True)
