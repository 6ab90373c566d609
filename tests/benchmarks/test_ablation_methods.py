"""The methods that only the ablations have."""

import numpy as np
from PIL import Image

from benchmarks.ablations.methods.codev_by_boxes import evidence_of


def test_boxes_judge_a_crop():
    pixels = np.random.default_rng(0).integers(0, 255, (36, 48, 3), dtype=np.uint8)
    whole = Image.fromarray(pixels).resize((480, 360), Image.Resampling.BICUBIC)
    question = "What colour is the street sign in the region 110, 110, 210, 170?"

    def score(*box):
        shown = whole.crop(box).resize((2 * (box[2] - box[0]), 2 * (box[3] - box[1])))
        return evidence_of(shown, whole, f"image.crop({box})", question)

    assert score(100, 100, 220, 180) == 1.0
    assert score(180, 100, 300, 180) == 0.5
    assert score(300, 200, 420, 280) == 0.0
    assert score(0, 0, 480, 360) == 0.0
