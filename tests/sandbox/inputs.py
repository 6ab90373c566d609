"""The cells that a model writes on its way to an answer, and the images that some of them start from.

One entry of cases/trajectories.json:

    {"name": "crop_tried_twice", "rounds": ["...", "..."],
     "expect": {"images": [[800, 1000]], "text": "cropped_1.jpg\\n", "contains": "..."},
     "inputs": [["RGBA", 64, 64]], "names": ["shots/12.png"], "inside_only": true}

`expect` is about the last round. Without `inputs` there is one image, a photograph of 2000x1500. `names` are those that
the prompt gives the images. `inside_only` marks what plain Python does otherwise. What the cells do follows the
examples of Thyme (appendix C.7), CodeV (section 15), PyVision-RL (figures 8, 17 and 18) and FIGR (table of cases);
those called `opening_…` begin as the code of these, of DeepEyes and of Mini-o3 begins.
"""

import json
from pathlib import Path

import numpy as np
from PIL import Image

TRAJECTORIES: list[dict] = json.loads((Path(__file__).parent / "cases" / "trajectories.json").read_text())


def make_inputs(case: dict) -> list[Image.Image]:
    return [_pattern(mode, width, height) for mode, width, height in case["inputs"]]


def _pattern(mode: str, width: int, height: int) -> Image.Image:
    rows, columns = np.mgrid[0:height, 0:width]
    if mode == "I;16":
        return Image.fromarray((rows * 900 + columns * 700).astype(np.uint16))
    pixels = np.stack([rows * 9 % 256, columns * 7 % 256, (rows + columns) * 5 % 256], axis=-1)
    return Image.fromarray(pixels.astype(np.uint8)).convert(mode)
