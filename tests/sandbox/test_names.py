"""Code opens the images by the names that its prompt gives them, and nothing else by them."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from darkroom.sandbox import SandboxError, SandboxPool, Session
from darkroom.sandbox._guest.names import ImageLinks
from darkroom.sandbox.doctor import can_run, diagnose
from tests.sandbox.inputs import make_inputs

IMAGES = make_inputs({"inputs": [["RGB", 60, 40], ["L", 20, 30]]})
OPENED_IN_EVERY_WAY = """
import os, pathlib
from pathlib import Path
import matplotlib.pyplot as plt
for path, original in ((FIRST, image_path_0), (SECOND, image_path_1)):
    for name in (path, os.path.basename(path), Path(path), "./" + os.path.basename(path), os.path.abspath(path)):
        assert os.path.exists(name) and os.path.isfile(name) and Path(name).exists(), name
        assert np.array_equal(np.asarray(Image.open(name)), np.asarray(Image.open(original)))
        assert np.array_equal(cv2.imread(str(name)), cv2.imread(original))
        assert np.array_equal(plt.imread(name), plt.imread(original))
        assert open(name, "rb").read() == Path(original).read_bytes()
image_path = FIRST
print(image_path)
"""


@pytest.fixture(scope="module", params=["full", "lite"])
def own_pool(request: pytest.FixtureRequest) -> Iterator[SandboxPool]:
    if not can_run(request.param, diagnose()):
        pytest.skip(f"the {request.param} tier cannot run here")
    with SandboxPool(tier=request.param) as pool:
        yield pool


@pytest.mark.parametrize(
    ("names", "kinds"),
    [
        (["hr_bench_4k/179.jpg", "12.png"], set()),
        (["/data/hr_bench_4k/179.jpg", "../shots/12.png"], {"image_name"}),
    ],
)
def test_a_name_opens_its_image_in_this_round_and_the_next(
    own_pool: SandboxPool, names: list[str], kinds: set[str]
) -> None:
    with own_pool.group(IMAGES, names=names) as group, group.session() as session:
        first = session.run(OPENED_IN_EVERY_WAY.replace("FIRST", repr(names[0])).replace("SECOND", repr(names[1])))
        assert (first.error, first.text) == (None, f"{names[0]}\n")
        assert {edit.kind for edit in first.edits} == kinds
        assert (first.images, first.artefacts) == ((), ())
        assert session.run("print(Image.open(image_path).size, cv2.imread(image_path).shape)").text == (
            "(60, 40) (40, 60, 3)\n"
        )


def test_an_absolute_path_that_ends_in_a_name_opens_the_image(own_pool: SandboxPool) -> None:
    with own_pool.group(IMAGES, names=["hr/179.jpg", "hr/12.png"]) as group, group.session() as session:
        observation = session.run("print(Image.open('/datasets/hr/179.jpg').size, Image.open('/content/12.png').size)")
        assert (observation.error, observation.text) == (None, "(60, 40) (20, 30)\n")
        assert [edit.kind for edit in observation.edits] == ["image_name"] * 2
        assert session.run("Image.open('/datasets/hr/180.jpg')").status == "error"


def test_a_file_saved_under_a_name_takes_its_place(own_pool: SandboxPool) -> None:
    with own_pool.group(IMAGES, names=["a.png", "b.png"]) as group, group.session() as session:
        observation = session.run(
            "Image.open('a.png').crop((0, 0, 9, 9)).save('/mnt/data/temp_processed_images/a.png')\n"
            "cv2.imwrite('b.png', cv2.imread('b.png')[:5, :5])\n"
            "print(Image.open('a.png').size, cv2.imread('b.png').shape, cv2.imread(image_path).shape)"
        )
        assert (observation.error, observation.text) == (None, "(9, 9) (5, 5, 3) (40, 60, 3)\n")
        assert [image.pixels.size for image in observation.images] == [(9, 9), (5, 5)]
    with own_pool.group(IMAGES, names=["a.png", "b.png"]) as group, group.session() as session:
        assert session.run("Image.open('a.png').convert('L').save('a.png')").ok  # of the same size: no shared pixels
        assert session.run("print(Image.open('a.png').mode, Image.open('b.png').size)").text == "L (20, 30)\n"


def test_a_file_name_that_two_images_share_opens_neither(own_pool: SandboxPool) -> None:
    with own_pool.group(IMAGES, names=["a/1.png", "b/1.png"]) as group, group.session() as session:
        assert (
            session.run("print(Image.open('a/1.png').size, Image.open('b/1.png').size)").text == "(60, 40) (20, 30)\n"
        )
        assert session.run("Image.open('1.png')").status == "error"


def test_names_that_stand_in_each_others_way_start_a_session_all_the_same(own_pool: SandboxPool) -> None:
    with own_pool.group(IMAGES * 2, names=["a", "a/b.png", ".tmp", "a"]) as group, group.session() as session:
        assert session.run("print(Image.open('a').size, Image.open('b.png').size)").text == "(60, 40) (20, 30)\n"


def test_without_names_the_host_s_own_name_opens_nothing(session: Session, photo: Path) -> None:
    assert session.run(f"import os\nprint(os.path.exists({photo.name!r}), os.listdir('.'))").text.endswith(
        "False ['.tmp']\n"
    )


@pytest.mark.parametrize("name", ["/", "..", "a\0b", "é" * 128, "\ud800"])
def test_what_can_be_no_name_is_an_error(pool: SandboxPool, name: str) -> None:
    with pytest.raises(SandboxError):
        pool.group([Image.new("L", (4, 4))], names=[name])


def test_a_name_leads_to_the_inputs_only(tmp_path: Path) -> None:
    secret, photo, work = tmp_path / "secret.png", tmp_path / "photo.png", tmp_path / "work"
    for path in (secret, photo):
        Image.fromarray(np.zeros((4, 4), np.uint8)).save(path)
    work.mkdir()
    links = ImageLinks(["179.png"], [str(photo)])
    links.settle(str(work))
    links.make()
    assert links.target(work / "179.png") == str(photo)
    os.unlink(work / "179.png")
    os.symlink(secret, work / "179.png")
    assert links.target(work / "179.png") == str(work / "179.png")
    links.give_way(work / "179.png")
    assert os.path.islink(work / "179.png")
