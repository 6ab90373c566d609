"""The programs of the tools, and which tools there are."""

import pytest
from pydantic import ValidationError

from darkroom.pipelines.services import ServiceError
from darkroom.pipelines.services.tools import CropImage, ImageZoomIn, RunCode, SelectFrames, no_tool, tools_for


@pytest.mark.parametrize(
    ("protocol", "n_images", "n_videos", "names"),
    [
        ("thyme", 1, 0, ["run_code"]),
        ("pyvision", 0, 1, ["run_code", "select_frames"]),
        ("tool_call", 1, 0, ["run_code", "crop_image", "image_zoom_in"]),
        ("tool_call", 0, 0, ["run_code"]),
    ],
)
def test_a_protocol_offers_its_tools(protocol, n_images, n_videos, names):
    assert [tool.tool for tool in tools_for(protocol, n_images=n_images, n_videos=n_videos)] == names


def test_an_unknown_tool_is_named_with_those_that_there_are():
    error = no_tool("zoom", ("run_code", "crop_image"))
    assert str(error) == "no tool 'zoom' here; there are run_code, crop_image"
    assert error.kind == "unknown_tool"


def test_a_box_in_pixels_becomes_fractions_of_its_image_and_ends_at_its_edges():
    tool = ImageZoomIn(bbox_2d=(10, 20, 900, 60), target_image=2)
    assert tool.program([(1, 1), (100, 80)]) == "crop_image_normalized(bbox_2d=[0.1, 0.25, 1.0, 0.75], target_image=2)"


@pytest.mark.parametrize("number", [0, -1, 3])
def test_an_image_that_there_is_not(number):
    with pytest.raises(ServiceError, match=f"target_image {number}: there are 2 images"):
        ImageZoomIn(bbox_2d=(0, 0, 1, 1), target_image=number).program([(8, 8), (9, 9)])


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (CropImage, {"bbox_2d": [0, 0, 1.1, 1]}),
        (CropImage, {"bbox_2d": [0, 0, 1]}),
        (CropImage, {"bbox_2d": [0, 0, float("nan"), 1]}),
        (ImageZoomIn, {"bbox_2d": [-1, 0, 5, 5]}),
        (SelectFrames, {"target_frames": []}),
        (SelectFrames, {"target_frames": ["0); import os"]}),
        (SelectFrames, {"target_frames": [-1]}),
        (RunCode, {"code": "1", "path": "/etc/passwd"}),
        (RunCode, {}),
    ],
)
def test_other_arguments_are_refused(tool, arguments):
    with pytest.raises(ValidationError):
        tool.model_validate(arguments)
