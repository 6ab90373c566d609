"""The image store on an S3 server: read once, then from the cache; errors in one line."""

from __future__ import annotations

import sys

import pytest

from darkroom.pipelines.generation.stage import row_error
from darkroom.pipelines.storage.images import ImageCache, ImageMissing, ImageStore
from darkroom.pipelines.storage.storage_errors import StorageError
from darkroom.pipelines.storage.store_paths import filesystem
from tests.object_store import object_store_server


@pytest.fixture
def url(object_store) -> str:
    return object_store.url("images")


def remove_all(url: str) -> None:
    fs, root = filesystem(url)
    fs.rm(root, recursive=True)


def test_what_is_stored_is_read_by_others(url, make_image, encoded):
    data = encoded(make_image(), "JPEG")
    ref = ImageStore(url).ingest(data)
    assert ImageStore(url).read(ref) == data
    assert ImageStore(url).open(ref).size == (ref.width, ref.height)


def test_what_was_read_once_is_read_from_the_cache(url, make_image, encoded, tmp_path):
    data = encoded(make_image(), "JPEG")
    ref = ImageStore(url).ingest(data)
    cached = ImageStore(url, ImageCache(tmp_path, 1_000_000))
    cached.read(ref)
    remove_all(url)
    assert cached.read(ref) == data
    with pytest.raises(ImageMissing, match="images"):
        ImageStore(url).read(ref)


def test_what_was_made_here_is_in_the_cache_and_in_the_store(url, make_image, tmp_path):
    ref = ImageStore(url, ImageCache(tmp_path, 1_000_000)).add_pixels(make_image())
    assert (tmp_path / ref.sha256[:2] / ref.sha256).read_bytes() == ImageStore(url).read(ref)


def test_what_is_new_on_this_machine_is_uploaded_whatever_the_store_has(url, make_image, tmp_path):
    first, second = (ImageStore(url, ImageCache(tmp_path / name, 1_000_000)) for name in "ab")
    ref = first.add_pixels(make_image())
    assert second.add_pixels(make_image()) == ref
    remove_all(url)
    assert first.add_pixels(make_image()) == ref
    assert ImageStore(url).read(ref), "a file in the cache is no proof that the store has it"


def test_a_local_store_has_no_second_copy(tmp_path, make_image):
    store = ImageStore(str(tmp_path / "images"), ImageCache(tmp_path / "cache", 1_000_000))
    store.read(store.add_pixels(make_image()))
    assert not (tmp_path / "cache").exists()


def test_a_bucket_that_is_not_there_is_said(object_store, make_image):
    url = f"{object_store.protocol}://gone-for-good/images"
    with pytest.raises(StorageError, match=rf"{url}: its bucket does not exist\. Create it"):
        ImageStore(url).add_pixels(make_image())


def test_a_store_of_no_kind_is_said():
    with pytest.raises(StorageError, match=r"there is no store s4://\. Use a folder, or a URL with s3, "):
        ImageStore("s4://bucket/images")


@pytest.mark.parametrize(("url", "extra"), [("gs://b/i", "gcs"), ("az://b/i", "azure"), ("s3://b/i", "s3")])
def test_a_missing_extra_is_named(url, extra, monkeypatch):
    for package in ("s3fs", "gcsfs", "adlfs"):
        monkeypatch.setitem(sys.modules, package, None)
    registry = sys.modules["fsspec.registry"]._registry
    monkeypatch.delitem(registry, url.partition(":")[0], raising=False)  # where it was imported before
    with pytest.raises(StorageError, match=rf"Run: pip install 'darkroom-toolkit\[{extra}\]'"):
        ImageStore(url)


def test_no_credentials_are_said(s3, monkeypatch, make_image):
    filesystem("s3://b")[0].clear_instance_cache()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    with pytest.raises(StorageError, match=r"does not let you in: .* set AWS_ACCESS_KEY_ID"):
        ImageStore("s3://bucket/images").add_pixels(make_image())
    filesystem("s3://b")[0].clear_instance_cache()


def test_a_server_that_dies_is_no_fault_of_the_row(monkeypatch, make_image):
    with object_store_server() as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        store = ImageStore(server.url("images"))
        ref = store.add_pixels(make_image())
        server.kill()
        with pytest.raises(StorageError, match=r"check the network and .*, then run again") as caught:
            store.read(ref)
    with pytest.raises(StorageError):
        row_error(caught.value)
