"""A prompt's images and videos: what the machine lacks is never blamed on an image, and a group has a budget."""

import fcntl
import mmap
import os
import resource
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import cv2
import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from darkroom.sandbox import ImageUnreadable, InputsTooLarge, Limits, ResourcesExhausted, SandboxPool
from darkroom.sandbox._kernel import syscalls
from darkroom.sandbox.inputs import open_inputs

pytestmark = pytest.mark.e2e

TWO_PIXELS = Image.new("RGB", (2, 1))


def test_the_time_of_a_call_is_no_limit_for_an_image(pool: SandboxPool) -> None:
    """12 megapixels take half a second, and on a busy machine more than any call may last."""
    image = Image.fromarray(np.random.default_rng(0).integers(0, 9, (3000, 4000), np.uint8))
    with pool.group([image], limits=Limits(seconds=0.01, grace=0.01)) as group:
        assert group.n_sessions <= 1


def test_an_image_is_sealed_as_soon_as_nobody_holds_its_memory() -> None:
    """The kernel holds pages for a moment too; a mapping that ends later stands for it."""
    fd = os.memfd_create("pixels", os.MFD_ALLOW_SEALING)
    os.truncate(fd, 4096)
    memory = mmap.mmap(fd, 4096)
    with pytest.raises(OSError, match="busy"):
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_WRITE)
    threading.Timer(0.1, memory.close).start()
    syscalls.seal(fd, fcntl.F_SEAL_WRITE)
    with pytest.raises(PermissionError):
        os.write(fd, b"x")
    os.close(fd)


def test_memory_that_stays_in_use_is_not_sealed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syscalls, "_SEAL_WAITS", (0.0,))
    fd = os.memfd_create("pixels", os.MFD_ALLOW_SEALING)
    os.truncate(fd, 4096)
    with mmap.mmap(fd, 4096), pytest.raises(OSError, match="busy"):
        syscalls.seal(fd, fcntl.F_SEAL_WRITE)
    os.close(fd)


def with_open_files(most: int, program: str) -> str:
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({most}, {most}))\n"
    command = [sys.executable, "-c", limit + textwrap.dedent(program)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


OPEN_IMAGES = """
    from PIL import Image
    from darkroom.sandbox import SandboxError, SandboxPool
    with SandboxPool() as pool:
        try:
            with pool.group([Image.new("RGB", (9, 9))] * N_IMAGES) as group, group.session() as session:
                print(session.run("print(image_size)").text)
        except SandboxError as error:
            print(type(error).__name__, error)
"""


def test_images_are_read_where_few_files_may_be_open(full_tier: None) -> None:
    assert with_open_files(100, OPEN_IMAGES.replace("N_IMAGES", "1")) == "(9, 9)\n\n"


# 60: the host can open them all, the process that decodes cannot
@pytest.mark.parametrize("n_images", [30, 60])
def test_too_few_open_files_are_named_and_blame_no_image(full_tier: None, n_images: int) -> None:
    said = with_open_files(70, OPEN_IMAGES.replace("N_IMAGES", str(n_images)))
    assert said.startswith("ResourcesExhausted this machine lacks what the sandbox needs: ")
    assert "Too many open files" in said or "not every input arrived" in said
    assert "ulimit -n" in said


def test_a_lack_of_memory_blames_no_image(tmp_path: Path) -> None:
    """The locked decoder's own function, in a process with less memory than the image takes."""
    path = tmp_path / "large.png"
    Image.new("L", (7000, 7000)).save(path)
    program = f"""
        import os, resource
        from darkroom.sandbox._guest.decode import Target, _decode_one
        from darkroom.sandbox import Limits
        source, pixels, bgr = os.open({str(path)!r}, os.O_RDONLY), os.memfd_create("a"), os.memfd_create("b")
        size = int(open("/proc/self/statm").read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (size + (20 << 20),) * 2)
        limits = Limits()
        print(_decode_one(Target(source, pixels, bgr), limits, 0)[0])
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith("{'exhausted': ")


def test_a_file_that_cannot_be_opened_for_want_of_descriptors_is_no_broken_image(photo: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.open("/dev/null", os.O_RDONLY)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"), open_inputs([photo], [], Limits()):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_an_image_in_memory_whose_file_is_cut_off_is_unreadable(photo: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.jpg"
    cut.write_bytes(photo.read_bytes()[:5000])
    unreadable = pytest.raises(ImageUnreadable, match="image 1")
    with Image.open(cut) as image, unreadable, open_inputs([TWO_PIXELS, image], [], Limits()):
        pass


def test_the_bytes_of_a_group_have_a_limit_that_is_named(pool: SandboxPool, tmp_path: Path) -> None:
    video = tmp_path / "sparse.mp4"
    with video.open("wb") as file:
        file.truncate(2 << 20)
    with pytest.raises(InputsTooLarge, match=r"2 MB together, at most 1 are allowed: .* raise Limits.input_mb"):
        pool.group(videos=[video], limits=Limits(input_mb=1))


def test_the_pixels_of_a_group_have_a_limit_that_is_named(pool: SandboxPool) -> None:
    images = [Image.new("L", (100, 100))] * 3
    with pool.group(images, limits=Limits(input_pixels=30_000)) as group:
        assert group.n_sessions <= 1
    with pytest.raises(InputsTooLarge, match=r"more than 29999 pixels \(Limits.input_pixels\): give fewer or smaller"):
        pool.group(images, limits=Limits(input_pixels=29_999))


def test_what_the_machine_lacks_is_said_with_what_to_do() -> None:
    assert str(ResourcesExhausted("No space left on device", 28)).endswith(
        "To do: free or enlarge the disk that is full, in the lite tier /dev/shm (docker: --shm-size)"
    )


def test_shared_pixels_are_those_that_each_library_decodes(pool: SandboxPool, tmp_path: Path) -> None:
    """Of whatever kind the file is: OpenCV's are Pillow's in another order only where both decode alike."""
    noise = np.random.default_rng(0).integers(0, 256, (121, 83, 4), dtype=np.uint8)
    smooth = Image.fromarray(noise[..., :3]).resize((170, 250), Image.Resampling.BICUBIC)
    turned = Image.Exif()
    turned[0x0112] = 6
    chunks = PngInfo()
    chunks.add(b"gAMA", (20000).to_bytes(4, "big"))
    for quality, subsampling, progressive in ((95, 0, False), (75, 1, True), (30, 2, False), (30, 2, True)):
        options = {"quality": quality, "subsampling": subsampling, "progressive": progressive}
        smooth.save(tmp_path / f"{quality}{progressive}.jpg", **options)
    smooth.save(tmp_path / "turned.jpg", exif=turned)
    smooth.save(tmp_path / "turned.png", exif=turned)
    smooth.save(tmp_path / "gamma.png", pnginfo=chunks)
    smooth.save(tmp_path / "transparent.png", transparency=(0, 0, 0))
    smooth.convert("L").save(tmp_path / "grey.png")
    smooth.quantize(64).save(tmp_path / "palette.png")
    smooth.convert("CMYK").save(tmp_path / "inks.jpg")
    Image.fromarray(noise, "RGBA").save(tmp_path / "alpha.png")
    smooth.save(tmp_path / "animated.png", save_all=True, append_images=[smooth.rotate(180)])
    cv2.imwrite(str(tmp_path / "sixteen.png"), noise[..., :3].astype(np.uint16) * 255 + 100)
    paths = sorted(tmp_path.iterdir())
    code = f"""
import io
for number in range({len(paths)}):
    path = globals()[f"image_path_{{number}}"]
    data = open(path, "rb").read()
    shared, decoded = cv2.imread(path), cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    plain = Image.open(io.BytesIO(data))
    print(np.array_equal(shared, decoded), np.array_equal(np.asarray(Image.open(path)), np.asarray(plain)))
"""
    with pool.group(images=paths) as group, group.session(seed=0) as session:
        assert session.run(code).text == "True True\n" * len(paths)
