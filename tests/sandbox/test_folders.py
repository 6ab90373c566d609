"""What a session left behind is removed, whatever it is."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from darkroom.sandbox.folders import make_scratch, remove_tree
from tests.sandbox import ordinary_user
from tests.sandbox.test_pool import run_python
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e


def test_a_tree_deeper_than_the_stack_and_than_any_path_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "session"
    top.mkdir()
    descriptor = os.open(top, os.O_RDONLY)
    for level in range(3000):
        os.mkdir("deep", dir_fd=descriptor)
        below = os.open("deep", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
        if level % 100 == 0:
            os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=descriptor))
    os.close(descriptor)
    remove_tree(str(top))
    assert not top.exists()


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("x")
    top = tmp_path / "session"
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "b" / "link").symlink_to(tmp_path / "kept", target_is_directory=True)
    (top / "a" / ".removed-0").mkdir()
    (top / ".removed-0").mkdir()
    os.mkfifo(top / "a" / "pipe")
    remove_tree(str(top))
    assert not top.exists()
    assert (tmp_path / "kept" / "file").read_text() == "x"


def test_a_folder_that_is_gone_is_no_error(tmp_path: Path) -> None:
    remove_tree(str(tmp_path / "gone"))


@pytest.fixture
def as_ordinary_user() -> Iterator[None]:
    """Root may list and write to everything."""
    user = os.geteuid()
    os.seteuid(user or ordinary_user.UID)
    yield
    os.seteuid(user)


def test_folders_that_their_owner_may_not_list_or_enter_are_removed(as_ordinary_user: None) -> None:
    top = Path(tempfile.mkdtemp())
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "b" / "file").write_text("x")
    for folder, mode in ((top / "a" / "b", 0o300), (top / "a", 0o000), (top, 0o300)):
        folder.chmod(mode)
    remove_tree(str(top))
    assert not top.exists()


HOST = """
    import sys, time
    from darkroom.sandbox import SandboxPool
    pool = SandboxPool(tier="lite")
    print(pool.group().session().run("import os; os.mkdir('a', 0o300); print(os.getcwd()[::-1])").text[::-1].strip())
    print(pool.pid, flush=True)
    time.sleep(60)
"""


def start_lite_host() -> tuple[subprocess.Popen[str], Path, int]:
    """A host with one session, the folder of its pool, and the process id of its launcher."""
    host = run_python(HOST)
    assert host.stdout is not None
    folder, pid = host.stdout.readline().strip(), int(host.stdout.readline())
    return host, Path(folder).parent, pid


def test_the_folders_of_a_host_that_was_killed_are_removed_by_its_launcher(lite_tier: None) -> None:
    host, scratch, _ = start_lite_host()
    assert scratch.name.startswith("sandbox-")
    assert scratch.is_dir()
    host.kill()
    host.communicate()
    wait_until(lambda: not scratch.exists())


def test_what_a_killed_launcher_left_is_removed_by_the_next_pool_and_nothing_else(lite_tier: None) -> None:
    host, scratch, launcher = start_lite_host()
    living, lock = make_scratch()
    os.kill(host.pid, signal.SIGSTOP)  # it must not remove its folder itself
    os.kill(launcher, signal.SIGKILL)
    host.kill()
    host.communicate()
    assert scratch.is_dir()
    another, another_lock = make_scratch()
    assert not scratch.exists()
    assert Path(living).is_dir()
    for folder, descriptor in ((living, lock), (another, another_lock)):
        remove_tree(folder)
        os.close(descriptor)
