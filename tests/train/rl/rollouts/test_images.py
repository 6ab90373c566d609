import numpy as np
import pytest
import torch
from PIL import Image

from darkroom.train.models.loading import load_processor
from darkroom.train.rl.rollouts.transcript import processed_once


@pytest.fixture
def images():
    """Three images, two of them alike, and a grey one."""
    draw = np.random.default_rng(0)
    first, second = (Image.fromarray(draw.integers(0, 255, (90, wide, 3), np.uint8)) for wide in (120, 70))
    return [first, second, first.copy(), second.convert("L")]


@pytest.fixture
def counted(model):
    """The image processor of a tiny model, and the images that it was given, call by call."""
    processor = load_processor(model).image_processor
    calls, process = [], processor.preprocess

    class Counting(type(processor)):
        def preprocess(self, images, **given):
            calls.append(list(images))
            return process(images, **given)

    processor.__class__ = Counting
    return processor, calls


@pytest.mark.parametrize("nested", [False, True])
def test_patches_are_those_of_the_processor_itself(model, images, nested):
    processor = load_processor(model).image_processor
    shown = [images[:1], images[1:]] if nested else images
    alone = processor(images=shown, return_tensors="pt")
    with processed_once(processor):
        for _ in range(2):
            recalled = processor(images=shown, return_tensors="pt")
            assert set(recalled) == set(alone)
            assert all(torch.equal(recalled[name], alone[name]) for name in alone)


def test_every_image_is_processed_once(counted, images):
    processor, calls = counted
    with processed_once(processor):
        processor(images=images, return_tensors="pt")
        processor(images=[image.copy() for image in images], return_tensors="pt")
    assert [len(call) for call in calls] == [1, 1, 1]


def test_other_settings_make_other_patches(counted, images):
    processor, _ = counted
    with processed_once(processor):
        large = processor(images=images[:1], return_tensors="pt")
        small = processor(images=images[:1], return_tensors="pt", size={"shortest_edge": 784, "longest_edge": 3136})
    assert small["image_grid_thw"].tolist() != large["image_grid_thw"].tolist()


def test_an_image_that_was_painted_over_is_another_one(counted, images):
    processor, calls = counted
    with processed_once(processor):
        processor(images=images[:1], return_tensors="pt")
        other = images[0].copy()
        other.putpixel((0, 0), (1, 2, 3))
        processor(images=[other], return_tensors="pt")
    assert len(calls) == 2


def test_what_is_no_plain_image_goes_to_the_processor(counted, images):
    processor, calls = counted
    clear = images[0].convert("RGBA")
    with processed_once(processor):
        processor(images=[clear, images[1]], return_tensors="pt")
        processor(images=[np.asarray(images[0])], return_tensors="pt")
    assert [len(call) for call in calls] == [2, 1]


def test_afterwards_the_processor_recalls_nothing(counted, images):
    processor, calls = counted
    with processed_once(processor):
        processor(images=images[:1], return_tensors="pt")
    with pytest.raises(ValueError, match="no picture"), processed_once(processor):
        raise ValueError("no picture")
    processor(images=images[:1], return_tensors="pt")
    assert len(calls) == 2
    assert "preprocess" not in vars(processor)


def test_a_whole_conversation_is_the_same(model, images):
    processor = load_processor(model)
    text = ["<|vision_start|><|image_pad|><|vision_end|> what?"] * 2
    alone = processor(text=text, images=[[images[0]], [images[2]]], padding=True, return_tensors="pt")
    with processed_once(processor.image_processor):
        recalled = processor(text=text, images=[[images[0]], [images[2]]], padding=True, return_tensors="pt")
    assert set(recalled) == set(alone)
    assert all(torch.equal(recalled[name], alone[name]) for name in alone)
