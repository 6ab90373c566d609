"""Kept rows make the batches that reading them makes, and are decoded once while there is room."""

import pytest
from datasets import Image

from darkroom.train.examples.datasets import open_dataset, presented
from darkroom.train.examples.encoding import ROOM, RowCache, open_reader


@pytest.fixture
def decoded(monkeypatch):
    """The images that were decoded."""
    found = []
    decode = Image.decode_example

    def counted(self, image, **options):
        found.append(image)
        return decode(self, image, **options)

    monkeypatch.setattr(Image, "decode_example", counted)
    return found


@pytest.mark.parametrize("ablation", [{}, {"train_observations": True}, {"layout": "inline"}])
def test_batches_are_those_of_the_reader(dataset, rows, model, ablation):
    reader = open_reader(model, **ablation)
    cache = RowCache(reader)
    kept = presented(open_dataset(dataset), cache.present, decode=False)
    for chosen in ([0, 4, 7], [7], [0, 4, 7]):
        batch, expected = cache.collate([kept[place] for place in chosen]), reader.read([rows[n] for n in chosen])
        assert set(batch) == set(expected)
        for name in expected:
            assert batch[name].dtype == expected[name].dtype
            assert batch[name].equal(expected[name])


@pytest.mark.parametrize(("room", "times"), [(ROOM, 1), (0, 2)])
def test_an_image_is_decoded_once_while_there_is_room(dataset, rows, model, decoded, room, times):
    cache = RowCache(open_reader(model), room)
    kept = presented(open_dataset(dataset), cache.present, decode=False)
    for _epoch in range(2):
        list(kept)
    assert len(decoded) == times * sum(len(row["images"]) for row in rows)
    assert cache.room >= 0
