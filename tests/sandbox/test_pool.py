"""The tree of processes: what it takes in, what it refuses, and that nothing of it is left behind."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from PIL import Image

from darkroom.sandbox import Group, ImageUnreadable, Limits, Observation, SandboxClosed, SandboxError, SandboxPool
from darkroom.sandbox.doctor import can_run, diagnose
from darkroom.sandbox.process import attest
from tests.sandbox.arena import descendants
from tests.waiting import wait_until

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]


def run_python(code: str, **environment: str) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_hundred_sessions_leave_no_process_and_no_descriptor(pool: SandboxPool, group: Group) -> None:
    for _ in range(2):  # the first takes the one that was started ahead
        group.session().close()
    before, n_fds = descendants(pool.pid), len(os.listdir("/proc/self/fd"))
    for index in range(100):
        with group.session() as session:
            if index % 10 == 0:
                session.run("import os\nos._exit(3)")
    assert descendants(pool.pid) == before
    assert len(os.listdir("/proc/self/fd")) == n_fds


def test_a_group_that_closes_ends_its_sessions(pool: SandboxPool) -> None:
    before = descendants(pool.pid)
    group = pool.group([Image.new("RGB", (9, 9))], rollouts=3)
    session = group.session()
    group.close()
    assert session.run("print(1)").status == "killed"
    wait_until(lambda: descendants(pool.pid) == before)
    with pytest.raises(SandboxClosed):
        group.session()


def test_sessions_that_were_started_ahead_are_handed_out_with_the_seed_asked_for(pool: SandboxPool) -> None:
    def numbers(group: Group, n_sessions: int) -> list[str]:
        sessions = [group.session(seed=seed) for seed in range(n_sessions)]
        return [session.run("import random; print(random.random())").text for session in sessions]

    with pool.group(rollouts=3) as ahead, pool.group(rollouts=0) as on_demand:
        wait_until(lambda: pool.stats().spares == 3)
        wait_until(lambda: ahead.n_sessions == 3)
        assert numbers(ahead, 4) == numbers(on_demand, 4)
        assert pool.stats().spares == 0


def test_a_spare_that_died_is_not_handed_out(pool: SandboxPool) -> None:
    with pool.group(rollouts=1) as group:
        wait_until(lambda: group.n_sessions == 1)
        before = descendants(pool.pid)
        with pool.group(rollouts=1) as other:
            wait_until(lambda: other.n_sessions == 1)
            (spare,) = {pid for pid in descendants(pool.pid) - before if not children_of(pid)}
            time.sleep(0.2)
            os.kill(spare, signal.SIGKILL)
            wait_until(lambda: not Path(f"/proc/{spare}").exists())
            with other.session() as session:
                assert session.run("print(1)").text == "1\n"


def test_statistics_count_what_happened(full_tier: None) -> None:
    with SandboxPool(tier="full", limits=Limits(seconds=1)) as pool, pool.group(rollouts=2) as group:
        with group.session() as session:
            session.run("print(1)")
            session.run("1 / 0")
        with group.session() as session:
            session.run("import os; os._exit(0)")
            seen = pool.stats()
    assert (seen.calls, seen.statuses, seen.broken) == (3, {"ok": 1, "error": 1, "killed": 1}, 1)
    assert (seen.running, seen.waiting, seen.groups, seen.sessions_started, seen.trees_started) == (0, 0, 1, 2, 1)
    assert seen.call_seconds.n == 3
    assert 0 < seen.call_seconds.p50 <= seen.call_seconds.p99 <= seen.call_seconds.longest
    assert seen.processes >= 4
    assert seen.memory_mb is None or seen.memory_mb > 20


def test_a_killed_host_leaves_no_survivor(full_tier: None) -> None:
    host = run_python("""
        import sys, time
        from darkroom.sandbox import SandboxPool
        pool = SandboxPool(tier="full")
        sessions = [pool.group().session() for _ in range(2)]
        sessions[0].run("import threading, time; threading.Thread(target=time.sleep, args=(60,)).start()")
        print(pool.pid, flush=True)
        sessions[1].run("import time; time.sleep(8)")
        time.sleep(60)
    """)
    tree = {int(host.stdout.readline())}
    tree |= descendants(next(iter(tree)))
    assert len(tree) >= 6
    host.send_signal(signal.SIGKILL)
    host.communicate()
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in tree))


def test_a_dead_tree_is_started_anew_by_the_next_group(full_tier: None) -> None:
    with SandboxPool(tier="full") as pool:
        group = pool.group()
        session = group.session()
        tree = descendants(pool.pid)
        os.kill(pool.pid, signal.SIGKILL)
        wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in tree))
        assert session.run("print(1)").status == "killed"
        with pytest.raises(SandboxClosed):
            group.session()
        with pool.group() as another, another.session() as fresh:
            assert fresh.run("print(1)").ok


@pytest.mark.parametrize("crash", ["zygote", "group"])
def test_a_crash_breaks_the_rollouts_that_it_takes_and_none_hangs(full_tier: None, crash: str) -> None:
    limits = Limits(seconds=60)
    with SandboxPool(tier="full", concurrency=2, limits=limits) as pool, pool.group(rollouts=4) as group:
        sessions = [group.session() for _ in range(4)]
        # launcher, zygote's parent, zygote, group, sessions
        chain = [pool.pid]
        while len(children := list(children_of(chain[-1]))) == 1:
            chain += children
        victim = chain[-1] if crash == "group" else chain[-2]

        async def roll_out() -> list[Observation]:
            calls = [asyncio.ensure_future(s.arun("import time; time.sleep(60)")) for s in sessions]
            await asyncio.sleep(0.3)
            os.kill(victim, signal.SIGKILL)
            return await asyncio.wait_for(asyncio.gather(*calls), 120)

        observations = asyncio.run(roll_out())
        assert {(o.status, o.broken) for o in observations} == {("killed", True)}
        assert [session.lost for session in sessions] == [True] * 4
        assert pool.stats().broken == 4
        with pool.group() as another, another.session() as session:
            assert session.run("print(1)").ok
            assert session.run("import os; os._exit(0)").broken
            assert not session.lost


@dataclass
class RecordedCgroup:
    """What a delegated cgroup would be told; this machine's kernel may have none."""

    pids: list[int] = field(default_factory=list)
    limits: list[dict] = field(default_factory=list)
    n_closed: int = 0
    n_memory_kills: int = 0

    def add(self, pid: int, **limits: int) -> "RecordedCgroup":
        self.pids.append(pid)
        self.limits.append(limits)
        return self

    def close(self) -> None:
        self.n_closed += 1


def test_a_delegated_cgroup_limits_every_session_and_its_kills_are_told_as_memory(
    full_tier: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cgroup = RecordedCgroup()
    monkeypatch.setattr("darkroom.sandbox.pool.open_delegated", lambda _environment: cgroup)
    with SandboxPool(tier="full", limits=Limits(memory_mb=100, disk_mb=20, reply_mb=12)) as pool, pool.group() as group:
        with group.session() as session:
            assert cgroup.pids[0] in descendants(pool.pid)
            assert cgroup.limits[0] == {"memory_bytes": 260 << 20, "max_tasks": 64}
            cgroup.n_memory_kills = 1
            seen = session.run("import os; os._exit(0)")
            assert (seen.status, seen.broken) == ("memory", True)
        assert cgroup.n_closed == 1
    assert cgroup.n_closed == 2


def test_a_pool_made_in_a_thread_outlives_the_thread(full_tier: None) -> None:
    host = run_python("""
        import threading
        from darkroom.sandbox import SandboxPool
        made = []
        thread = threading.Thread(target=lambda: made.append(SandboxPool(tier="full").group().session()))
        thread.start(); thread.join()
        print(made[0].run("print(6 * 7)").text, flush=True)
    """)
    assert host.communicate(timeout=300)[0].strip() == "42"


@pytest.mark.parametrize("data", [b"", b"not an image", b"\x89PNG\r\n\x1a\n" + b"\0" * 100])
def test_a_broken_image_is_named_and_harms_nothing(pool: SandboxPool, data: bytes) -> None:
    with pytest.raises(ImageUnreadable, match="image 1 cannot be decoded") as caught:
        pool.group([Image.new("RGB", (9, 9)), data])
    assert caught.value.index == 1
    with pool.group() as group, group.session() as session:
        assert session.run("print(1)").ok


def test_an_image_beyond_the_pixel_limit_is_refused(pool: SandboxPool) -> None:
    with pytest.raises(ImageUnreadable, match="300x300 pixels, at most 1000 pixels"):
        pool.group([Image.new("L", (300, 300))], limits=Limits(max_pixels=1000))


def test_a_path_that_is_no_file_is_refused(pool: SandboxPool, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    for path in (tmp_path / "missing.png", tmp_path, tmp_path / "pipe.png"):
        with pytest.raises(ImageUnreadable, match="image 0"):
            pool.group([path])


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "F"])
def test_an_image_in_memory_arrives_in_its_mode(pool: SandboxPool, mode: str) -> None:
    with pool.group([Image.new(mode, (12, 7))]) as group, group.session() as session:
        assert session.run("print(image_clue_0.mode, image_clue_0.load() is not None)").text == f"{mode} True\n"


def test_bytes_paths_and_images_may_be_mixed(pool: SandboxPool, photo: Path) -> None:
    images = [str(photo), photo, photo.read_bytes(), Image.new("RGB", (5, 6))]
    with pool.group(images) as group, group.session() as session:
        code = "print([image_path_0[-11:], image_path_3[-11:], image_size_2, image_size_3])"
        assert session.run(code).text == "['image_0.jpg', 'image_3.png', (2000, 1500), (5, 6)]\n"


def test_a_process_that_is_not_locked_down_is_refused() -> None:
    pidfd = os.pidfd_open(os.getpid())
    with pytest.raises(SandboxError, match=r"not locked down: Seccomp is 0"):
        attest(pidfd, namespaces=True)
    os.close(pidfd)


def test_a_closed_pool_says_so(full_tier: None) -> None:
    pool = SandboxPool(tier="full")
    pool.close()
    with pytest.raises(SandboxClosed, match="the pool is closed"):
        pool.group()


def test_an_unknown_tier_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARKROOM_SANDBOX_TIER", "none")
    with pytest.raises(SandboxError, match="'none' is no tier of the sandbox: set DARKROOM_SANDBOX_TIER to one of"):
        SandboxPool()
    with pytest.raises(SandboxError, match="'hard' is no tier of the sandbox: set --tier "):
        SandboxPool(tier="hard")


WITHOUT_NAMESPACES = """
    import errno, struct
    from darkroom.sandbox._kernel import seccomp, syscalls
    from darkroom.sandbox._kernel.syscalls import TABLES
    unshare = TABLES[syscalls.machine()].numbers["unshare"]
    refuse = [(0x20, 0, 0, 0), (0x15, 0, 1, unshare), (6, 0, 0, 0x50000 | errno.EPERM), (6, 0, 0, 0x7FFF0000)]
    syscalls.forbid_new_privileges()
    seccomp.install_filter(b"".join(struct.pack("HBBI", *step) for step in refuse))
"""


def test_a_tier_that_the_kernel_refuses_is_an_error_that_says_what_to_do() -> None:
    host = run_python(
        textwrap.dedent(WITHOUT_NAMESPACES)
        + textwrap.dedent("""
        from darkroom.sandbox import SandboxPool, SandboxUnavailable
        with SandboxPool(tier="full") as pool:
            try:
                pool.group()
            except SandboxUnavailable as error:
                print(error)
    """)
    )
    said = host.communicate(timeout=300)[0]
    assert "the full tier of the sandbox needs" in said
    assert "namespaces, which failed" in said
    assert "Operation not permitted" in said
    assert "DARKROOM_SANDBOX_TIER=lite" in said


def test_tmp_is_writable_where_the_library_lies_below_it(full_tier: None) -> None:
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        os.chmod(folder, 0o755)
        shutil.copytree(ROOT / "sandbox", f"{folder}/darkroom/sandbox", ignore=shutil.ignore_patterns("__pycache__"))
        host = run_python(f"""
            import sys
            sys.path.insert(0, {folder!r})
            from darkroom.sandbox import SandboxPool
            with SandboxPool(tier="full") as pool, pool.group() as group, group.session() as session:
                code = "tmp = '/' + 'tmp'; file = tmp + '/a.txt'; open(file, 'w').write('kept'); "
                code += "print(open(file).read(), os.listdir(tmp))"
                observation = session.run(code)
                print(observation.text, observation.error, [file.name for file in observation.artefacts])
                print(session.run("open(tmp + '/" + {os.path.basename(folder)!r} + "/a.txt', 'w')").error)
        """)
        out, errors = host.communicate(timeout=300)
    assert errors == ""
    assert out.startswith("kept [")
    assert os.path.basename(folder) in out
    assert "None ['.tmp/a.txt']" in out
    assert "Read-only file system" in out or "Permission denied" in out


def test_where_namespaces_are_forbidden_the_lite_tier_runs_when_it_is_chosen() -> None:
    if not can_run("lite", diagnose()):
        pytest.skip("the lite tier cannot run here")
    host = run_python(
        textwrap.dedent(WITHOUT_NAMESPACES)
        + textwrap.dedent("""
        from PIL import Image
        from darkroom.sandbox import SandboxPool
        with SandboxPool() as pool, pool.group([Image.new("RGB", (30, 20))]) as group, group.session() as session:
            code = "p = '/mnt/data/temp_processed_images/a.png'; image_clue_0.save(p); print(p, image_path)"
            observation = session.run(code)
            print(observation.status, observation.text, observation.images[0].name, observation.edits[0].kind)
    """),
        DARKROOM_SANDBOX_TIER="lite",
    )
    out, errors = host.communicate(timeout=300)
    assert errors == ""
    assert out.split() == [
        *("ok", "/mnt/data/temp_processed_images/a.png", "/mnt/data/input_images/image_0.png"),
        *("a.png", "output_folder"),
    ]


def children_of(pid: int) -> set[int]:
    return {int(child) for path in Path(f"/proc/{pid}/task").glob("*/children") for child in path.read_text().split()}
