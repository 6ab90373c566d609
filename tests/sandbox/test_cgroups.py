"""Delegated cgroups: found in fake texts of the kernel, limits in plain files, processes in a real cgroup2."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from darkroom.sandbox import cgroups, delegation
from darkroom.sandbox.cgroups import SessionCgroup, TreeCgroup, open_delegated, reason_for_none
from darkroom.sandbox.delegation import (
    CgroupMount,
    CgroupUnusable,
    check_controllers,
    check_reach,
    delegated_parent,
    parse_mount,
)
from darkroom.sandbox.errors import CGROUP_VARIABLE, SandboxClosed, SandboxError, SandboxUnavailable

UNIFIED = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"
HYBRID = """\
33 31 0:30 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
LIMITS = {"memory_bytes": 1 << 30, "max_tasks": 64}


def folder_of_plain_files(
    path: Path, *, controllers: str = "cpu memory pids", enabled: str = "", procs: str = ""
) -> Path:
    path.mkdir(parents=True)
    (path / "cgroup.controllers").write_text(f"{controllers}\n")
    (path / "cgroup.subtree_control").write_text(enabled)
    (path / "cgroup.procs").write_text(procs)
    return path


# --- where it is


def test_the_own_cgroup_is_found_below_the_mount() -> None:
    mount = parse_mount(UNIFIED, "0::/user.slice/run-1.scope/host\n")
    assert mount == CgroupMount(Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/user.slice/run-1.scope/host"))


def test_lines_of_cgroup_v1_are_passed_over() -> None:
    mount = parse_mount(HYBRID, "4:memory:/here\n0::/there\n")
    assert mount == CgroupMount(Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup/unified/there"))


def test_a_mount_may_show_a_part_and_have_a_blank_in_its_name() -> None:
    mountinfo = r"30 23 0:26 /docker/ab /a\040b rw - cgroup2 cgroup2 rw"
    assert parse_mount(mountinfo, "0::/docker/ab/host") == CgroupMount(Path("/a b"), Path("/a b/host"))


@pytest.mark.parametrize(
    ("mountinfo", "cgroup", "reason"),
    [
        (UNIFIED, "4:memory:/here\n", "without cgroup v2"),
        ("33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n", "0::/\n", "no cgroup2 file system"),
        (UNIFIED.replace(" / ", " /docker/ab "), "0::/elsewhere\n", "that shows /elsewhere"),
        (UNIFIED, "0::/../outside\n", r"that shows /\.\./outside"),
        ("", "", "without cgroup v2"),
    ],
)
def test_where_there_is_none_the_reason_is_said(mountinfo: str, cgroup: str, reason: str) -> None:
    with pytest.raises(CgroupUnusable, match=reason):
        parse_mount(mountinfo, cgroup)


# --- whose it is


def test_a_parent_that_systemd_has_marked_is_delegated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks = {(str(tmp_path / "run.scope"), "user.delegate"): b"1"}
    monkeypatch.setattr(delegation, "_attribute", lambda folder, name: marks.get((str(folder), name)))
    assert delegated_parent(CgroupMount(tmp_path, tmp_path / "run.scope" / "host")) == tmp_path / "run.scope"
    with pytest.raises(CgroupUnusable, match="is not delegated"):
        delegated_parent(CgroupMount(tmp_path, tmp_path / "user.slice" / "session.scope"))


def test_a_folder_that_can_only_be_written_is_not_delegated(tmp_path: Path) -> None:
    """Root can write everywhere; the tree is systemd's all the same."""
    (tmp_path / "user.slice" / "session.scope").mkdir(parents=True)
    with pytest.raises(CgroupUnusable, match="is not delegated"):
        delegated_parent(CgroupMount(tmp_path, tmp_path / "user.slice" / "session.scope"))


def test_the_top_of_a_container_is_delegated_and_the_kernels_root_is_not(tmp_path: Path) -> None:
    mount = CgroupMount(tmp_path, tmp_path / "host")
    with pytest.raises(CgroupUnusable, match="is not delegated"):
        delegated_parent(mount)
    (tmp_path / "cgroup.type").write_text("domain\n")
    assert delegated_parent(mount) == tmp_path


def test_the_host_process_is_never_moved_out_of_the_way(tmp_path: Path) -> None:
    with pytest.raises(CgroupUnusable, match="a cgroup with processes limits no children"):
        delegated_parent(CgroupMount(tmp_path, tmp_path))


# --- what it can do


def test_controllers_that_are_only_switched_off_are_switched_on(tmp_path: Path) -> None:
    folder = folder_of_plain_files(tmp_path / "delegated", enabled="cpu\n")
    check_controllers(folder)
    assert (folder / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_controllers_that_are_on_are_left_alone(tmp_path: Path) -> None:
    folder = folder_of_plain_files(tmp_path / "delegated", enabled="memory pids\n")
    check_controllers(folder)
    assert (folder / "cgroup.subtree_control").read_text() == "memory pids\n"


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"controllers": "cpu pids"}, "has no controller memory "),
        ({"controllers": ""}, "has no controller memory and pids"),
        ({"procs": "12\n13\n"}, "holds 2 processes"),
    ],
)
def test_a_folder_that_cannot_limit_says_why(tmp_path: Path, files: dict[str, str], reason: str) -> None:
    with pytest.raises(CgroupUnusable, match=reason):
        check_controllers(folder_of_plain_files(tmp_path / "delegated", **files))


def test_a_move_needs_a_right_on_the_common_ancestor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(delegation.os, "access", lambda path, mode: bool(asked.append(str(path))))
    mount = CgroupMount(tmp_path, tmp_path / "user" / "run.scope" / "host")
    with pytest.raises(CgroupUnusable, match=f"{tmp_path / 'user'} is not theirs"):
        check_reach(tmp_path / "user" / "other.scope", mount)
    assert asked == [str(tmp_path / "user" / "cgroup.procs")]


def test_a_named_folder_that_cannot_be_used_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    environment = {CGROUP_VARIABLE: str(tmp_path)}
    with pytest.raises(SandboxUnavailable, match=r"is no folder of cgroup v2.*To do: .*systemd-run.*docker"):
        open_delegated(environment)
    assert "is no folder of cgroup v2" in str(reason_for_none(environment))


def test_what_is_missing_without_a_name_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delegation, "_read", {"/proc/self/mountinfo": UNIFIED, "/proc/self/cgroup": "1:x:/\n"}.get)
    assert open_delegated({}) is None
    assert reason_for_none({}) == "this kernel runs without cgroup v2"


# --- limits, in plain files that stand for the kernel's


@pytest.fixture
def plain_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which every new folder holds control files, and is removed together with them."""

    def make(folder: Path) -> None:
        folder_of_plain_files(folder)
        for name in ("memory.max", "memory.swap.max", "pids.max", "cgroup.kill", "memory.events"):
            (folder / name).write_text("")

    def remove(path: Path) -> None:
        for file in Path(path).iterdir():
            if file.is_file():
                file.unlink()
        os.rmdir(path)

    monkeypatch.setattr(cgroups, "_make_folder", make)
    monkeypatch.setattr(cgroups, "_rmdir", remove)
    return folder_of_plain_files(tmp_path / "delegated")


def test_a_session_gets_its_limits_before_its_process(plain_kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[str, str]] = []
    monkeypatch.setattr(cgroups, "_write", lambda path, text: written.append((path.name, text)))
    TreeCgroup(plain_kernel).add(4321, memory_bytes=1 << 30, max_tasks=64)
    assert written == [
        ("cgroup.subtree_control", "+memory +pids"),
        ("memory.max", "1073741824"),
        ("memory.swap.max", "0"),
        ("pids.max", "64"),
        ("cgroup.procs", "4321"),
    ]


def test_sessions_have_folders_of_their_own(plain_kernel: Path) -> None:
    tree = TreeCgroup(plain_kernel)
    first, second = tree.add(11, **LIMITS), tree.add(12, **LIMITS)
    assert first.folder.parent == second.folder.parent == tree.folder
    assert [(session.folder / "cgroup.procs").read_text() for session in (first, second)] == ["11", "12"]
    first.close()
    assert [folder.name for folder in tree.folder.glob("session-*")] == [second.folder.name]
    tree.close()
    assert not tree.folder.exists()


def test_a_kernel_that_counts_no_swap_is_good_enough(tmp_path: Path) -> None:
    for name in ("memory.max", "pids.max"):
        (tmp_path / name).write_text("max\n")
    SessionCgroup(tmp_path).limit(memory_bytes=5, max_tasks=6)
    assert [(tmp_path / name).read_text()[:1] for name in ("memory.max", "pids.max")] == ["5", "6"]
    assert not (tmp_path / "memory.swap.max").exists()


def test_a_limit_that_cannot_be_set_is_an_error_and_leaves_no_folder(
    plain_kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, text: str) -> None:
        if path.name == "pids.max":
            raise PermissionError(1, "not yours")

    tree = TreeCgroup(plain_kernel)
    monkeypatch.setattr(cgroups, "_write", refuse)
    with pytest.raises(SandboxError, match=r"process 11 cannot be limited by .*not yours"):
        tree.add(11, **LIMITS)
    assert not list(tree.folder.glob("session-*"))


def test_kills_for_memory_are_counted(tmp_path: Path) -> None:
    (tmp_path / "memory.events").write_text("low 0\nhigh 0\nmax 31\noom 2\noom_kill 1\noom_group_kill 0\n")
    assert SessionCgroup(tmp_path).n_memory_kills == 1


def test_a_trial_leaves_nothing_behind(plain_kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "find_folder", lambda environment: plain_kernel)
    tree = open_delegated({})
    assert tree is not None
    assert tree.folder.parent == plain_kernel
    tree.close()
    assert reason_for_none({}) is None
    assert not list(plain_kernel.glob("*/"))


def test_a_kernel_without_the_control_files_is_unusable(plain_kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroups, "find_folder", lambda environment: plain_kernel)
    monkeypatch.setattr(cgroups, "_make_folder", folder_of_plain_files)
    assert "has no memory.max, pids.max, cgroup.kill" in str(reason_for_none({}))


# --- processes, in a real cgroup2


def _real_folder() -> Path | None:
    """The cgroup of this process, where it may make folders; controllers are not needed here."""
    try:
        own = parse_mount(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text()).own
    except (CgroupUnusable, OSError):
        return None
    return own if os.access(own, os.W_OK) and os.access(own / "cgroup.procs", os.W_OK) else None


@pytest.fixture
def real_parent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cgroup of its own, without limits: the machine may have no controllers."""
    own = _real_folder()
    if own is None:
        pytest.skip("no cgroup2 can be written here")
    monkeypatch.setattr(cgroups, "SUBTREE_CONTROL", "")
    monkeypatch.setattr(SessionCgroup, "limit", lambda self, **limits: None)
    parent = own / f"test-{os.getpid()}-{threading.get_ident()}"
    parent.mkdir()
    yield parent
    (parent / "cgroup.kill").write_text("1")
    for folder in sorted(parent.glob("**/"), reverse=True):  # innermost first; a test that failed leaves some
        assert cgroups._remove_folder(folder, seconds=60)


@pytest.fixture
def sleeper() -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def test_a_process_is_moved_and_killed_with_its_cgroup(real_parent: Path, sleeper: "subprocess.Popen[bytes]") -> None:
    tree = TreeCgroup(real_parent)
    session = tree.add(sleeper.pid, **LIMITS)
    assert f"/{tree.folder.name}/session-1\n" in Path(f"/proc/{sleeper.pid}/cgroup").read_text()
    (session.folder / "cgroup.kill").write_text("1")
    assert sleeper.wait(60) == -signal.SIGKILL
    session.close()
    assert not session.folder.exists()
    tree.close()


def test_a_closed_tree_takes_its_processes_along(real_parent: Path, sleeper: "subprocess.Popen[bytes]") -> None:
    tree = TreeCgroup(real_parent)
    session = tree.add(sleeper.pid, **LIMITS)
    tree.close()
    assert sleeper.wait(60) == -signal.SIGKILL
    assert not list(real_parent.glob("*/"))
    session.close()
    tree.close()
    with pytest.raises(SandboxClosed):
        tree.add(os.getpid(), **LIMITS)


def test_a_process_that_has_ended_is_not_limited(real_parent: Path, sleeper: "subprocess.Popen[bytes]") -> None:
    sleeper.kill()
    sleeper.wait()
    tree = TreeCgroup(real_parent)
    with pytest.raises(SandboxClosed, match="ended before the session was limited"):
        tree.add(sleeper.pid, **LIMITS)
    assert not list(tree.folder.glob("session-*"))
    tree.close()


def test_a_process_that_does_not_end_keeps_its_cgroup_for_later(
    real_parent: Path, sleeper: "subprocess.Popen[bytes]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroups, "_SESSION_END_SECONDS", 0.01)
    tree = TreeCgroup(real_parent)
    session = tree.add(sleeper.pid, **LIMITS)
    session.close()
    assert session.folder.exists()
    tree.close()
    assert not session.folder.exists()


def test_the_tree_of_a_killed_host_is_removed_by_the_next(
    real_parent: Path, sleeper: "subprocess.Popen[bytes]"
) -> None:
    code = (
        "import sys, time; from pathlib import Path; from darkroom.sandbox import cgroups; "
        "cgroups.SUBTREE_CONTROL = '';"
        "tree = cgroups.TreeCgroup(Path(sys.argv[1])); (tree.folder / 'session-1').mkdir();"
        "(tree.folder / 'session-1' / 'cgroup.procs').write_text(sys.argv[2]); print(tree.folder, flush=True);"
        "time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(real_parent), str(sleeper.pid)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout is not None
        folder = Path(host.stdout.readline().strip())
        beside = TreeCgroup(real_parent)
        assert folder.is_dir()  # its host lives
        host.kill()
    after = TreeCgroup(real_parent)
    assert not folder.exists()
    assert beside.folder.is_dir()
    assert sleeper.wait(60) == -signal.SIGKILL
    beside.close()
    after.close()


def test_pools_of_one_moment_do_not_take_each_other_for_abandoned(real_parent: Path) -> None:
    trees: list[TreeCgroup] = []
    threads = [
        threading.Thread(target=lambda: trees.extend(TreeCgroup(real_parent) for _ in range(10))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({tree.folder for tree in trees}) == 40
    assert all(tree.folder.is_dir() for tree in trees)
    for tree in trees:
        tree.close()
