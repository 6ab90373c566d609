"""Videos in a session: the file stays there, and only the frames that the code shows come back."""

from pathlib import Path

import av
import numpy as np
import pytest

from darkroom.sandbox import SandboxError, SandboxPool

pytestmark = pytest.mark.e2e

N_FRAMES = 50


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """160x120, 25 frames a second; frame i is grey of 5 * i."""
    path = tmp_path_factory.mktemp("clip") / "the_answer_is_seven.mp4"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("mpeg4", rate=25)
        stream.width, stream.height, stream.pix_fmt = 160, 120, "yuv420p"
        for number in range(N_FRAMES):
            frame = av.VideoFrame.from_ndarray(np.full((120, 160, 3), 5 * number, np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


@pytest.mark.parametrize("tier", ["full", "lite"])
def test_the_code_reads_frames_and_shows_those_that_it_chooses(full_tier: None, clip: Path, tier: str) -> None:
    with SandboxPool(tier=tier) as pool, pool.group(videos=[clip, clip.read_bytes()]) as group:
        with group.session() as session:
            seen = session.run("print(len(video_clue_0), video_clue_1.get_avg_fps(), video_path)")
            assert seen.text == "50 25.0 /mnt/data/input_images/video_0.mp4\n"
            seen = session.run("for i in (0, 20, 40): display(Image.fromarray(video_clue_0[i].asnumpy()))")
            assert [round(np.asarray(image.pixels).mean(), -1) for image in seen.images] == [0, 100, 200]
        with group.session() as session:
            batch = "from decord import VideoReader, cpu\nvr = VideoReader(video_path, ctx=cpu(0))\n"
            batch += "print(vr.get_batch([0, 49]).asnumpy().shape)"
            assert session.run(batch).text == "(2, 120, 160, 3)\n"


def test_a_video_that_is_none_is_an_error_of_the_code_that_names_it(pool: SandboxPool) -> None:
    with pool.group(videos=[b"no video"]) as group, group.session() as session:
        assert session.run("print('still here')").ok
        assert "is not a video that can be read" in session.run("len(video_clue_0)").error


def test_a_video_that_is_not_there_is_refused(pool: SandboxPool, tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="video 0 cannot be opened"):
        pool.group(videos=[tmp_path / "missing.mp4"])
