import numpy as np
import pytest

from darkroom.pipelines.models.messages import ImagePart, Text
from darkroom.pipelines.models.protocols import PyVision
from darkroom.pipelines.records import VideoRef
from darkroom.pipelines.storage.media_validation import thumbnails
from darkroom.pipelines.vision.frames import MAX_FRAMES, SIDE, frame_numbers, match_frames, sampled_frames


def video(n_frames, fps=8.0):
    return VideoRef("v" * 64, "mp4", 160, 120, n_frames, fps)


@pytest.mark.parametrize(
    ("n_frames", "wanted", "expected"),
    [
        (24, {"n_frames": 4}, (3, 9, 15, 21)),  # the middles of quarters
        (24, {"n_frames": 1}, (12,)),
        (3, {"n_frames": 8}, (0, 1, 2)),  # each once
        (24, {"per_second": 1.0}, (0, 8, 16)),
        (25, {"per_second": 1.0}, (0, 8, 16, 24)),
        (24, {"per_second": 100.0}, tuple(range(24))),
        (24, {"per_second": 0.01}, (0,)),
        (1, {"per_second": 1.0}, (0,)),
    ],
)
def test_frames_are_uniform_and_each_is_there_once(n_frames, wanted, expected):
    assert frame_numbers(video(n_frames), **wanted) == expected


def test_frames_are_never_more_than_a_context_can_hold():
    assert len(frame_numbers(video(36_000), n_frames=36_000)) == MAX_FRAMES
    assert len(frame_numbers(video(36_000), per_second=8)) == MAX_FRAMES


@pytest.mark.parametrize(("given", "message"), [({}, "give one of both"), ({"per_second": 1.0}, "does not say")])
def test_what_cannot_be_sampled_is_an_error(given, message):
    with pytest.raises(ValueError, match=message):
        frame_numbers(video(24, fps=0.0), **given)


def test_sampled_frames_are_those_of_the_video_and_a_prompt_names_them(workspace, clip):
    data = clip(3)
    film = workspace.images.add_video(data)
    frames = sampled_frames(film, workspace.images, n_frames=4)
    small = thumbnails(data, side=SIDE)
    for frame, number in zip(frames, (3, 9, 15, 21), strict=True):
        (match,) = match_frames(workspace.images.open(frame), small, aspect=160 / 120)
        assert number in match.numbers
    assert len({frame.sha256 for frame in frames}) == 4
    assert np.asarray(workspace.images.open(frames[0])).shape == (120, 160, 3)

    user = PyVision().opening("Where?", frames, (film,), mode="forbidden")[1]
    names = [part.text for part in user.parts if isinstance(part, Text)]
    assert sum(isinstance(part, ImagePart) for part in user.parts) == 4
    assert names[0] == "image_clue_0, frame 3 of video_clue_0, 0.4 seconds, 160x120 pixels:\n"
