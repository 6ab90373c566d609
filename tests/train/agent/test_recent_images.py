"""Images of the questions that are being worked on stay in memory, bounded in bytes."""

import pytest
from PIL import Image

from pipelines.storage.images import ImageMissing, ImageStore
from train.agent.recent_images import RecentImages


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
