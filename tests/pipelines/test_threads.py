"""How many threads numpy's BLAS and OpenCV take in Darkroom's processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.matrices import first_quickly

VARIABLE = "OPENBLAS_NUM_THREADS"


@pytest.mark.parametrize(("own", "expected"), [({}, "1"), ({VARIABLE: "3"}, "3")], ids=["default", "the user's"])
@pytest.mark.parametrize(
    "module",
    first_quickly(
        [
            "darkroom.assets.commands.sources",
            "darkroom.train.evaluate",
            "darkroom.assets.definitions",
            "darkroom.train.sft",
        ],
        n_quick=2,
    ),
)
def test_it_is_set_before_numpy_is_imported(module: str, own: dict[str, str], expected: str) -> None:
    program = f"""
import os, sys

class AtNumpy:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy":
            print(os.environ.get("{VARIABLE}"))
            sys.exit()

sys.meta_path.insert(0, AtNumpy())
import {module}
"""
    others = {name: value for name, value in os.environ.items() if name != VARIABLE}
    done = subprocess.run([sys.executable, "-c", program], env=others | own, capture_output=True, text=True, check=True)
    assert done.stdout == f"{expected}\n"


@pytest.mark.parametrize(("own", "expected"), [({}, "1"), ({"OPENCV_FOR_THREADS_NUM": "2"}, "2")])
def test_opencv_takes_one_for_each_of_the_threads_that_call_it(own: dict[str, str], expected: str) -> None:
    program = "from darkroom.pipelines.vision import registration; import cv2; print(cv2.getNumThreads())"
    others = {name: value for name, value in os.environ.items() if name != "OPENCV_FOR_THREADS_NUM"}
    done = subprocess.run([sys.executable, "-c", program], env=others | own, capture_output=True, text=True, check=True)
    assert done.stdout == f"{expected}\n"
