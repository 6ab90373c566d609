"""The pool: one tree of processes, from which the groups come."""

import os
import resource
import socket
import threading
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial
from itertools import count

from darkroom.sandbox._guest.messages import IMAGE_FOLDER, WORK_FOLDER, GroupRequest, RepairMode, ScanMode
from darkroom.sandbox._guest.names import check_names
from darkroom.sandbox.calls import Meter, PoolStats, Slots, processes_below
from darkroom.sandbox.cgroups import open_delegated
from darkroom.sandbox.digest import choose_echo
from darkroom.sandbox.errors import SandboxClosed, SandboxError, choose_tier, machine_errors, raised_as, require_extra
from darkroom.sandbox.folders import make_scratch, remove_tree
from darkroom.sandbox.group import Group
from darkroom.sandbox.inputs import ImageInput, VideoInput, open_inputs, suffix_of
from darkroom.sandbox.limits import Limits
from darkroom.sandbox.process import ZygoteProcess, attest
from darkroom.sandbox.session import Closing, GroupTerms, off_loop

_MAX_INPUTS = 64
_MAX_SLEEPERS = 64
"""Calls of event loops that wait or sleep, each in a thread, beside those that compute."""
_START_SECONDS = 30.0


class SandboxPool(Closing):
    """Source of sessions; one per host process.

    Construction starts the tree and returns; the first `group` waits for it (two to four seconds). A tree that has died
    is started anew by the next `group`; calls and sessions of the old one end as `broken` and nothing hangs.

    - `tier`: "full" or "lite"; by default what DARKROOM_SANDBOX_TIER says, else "full". Never less than was asked for:
      where the kernel cannot give it, `group` raises SandboxUnavailable.
    - `scan`: "strict" refuses to delete, move or rename files; "own_files" allows it for the session's own; "off".
    - `repair`: "small_model" rewrites trivial mistakes and reports each as an edit; "off" runs the code as it is.
    - `echo`: "last" shows a last expression's value and unshown figures, as a notebook does; "off" shows what the code
      shows. By default what DARKROOM_SANDBOX_ECHO says, else "last".
    - `concurrency`: calls that run at a time, by default the number of CPUs. A call is not timed while it waits for its
      turn, and one that sleeps makes room for another.

    Where cgroup v2 is delegated to this process, sessions are limited by it as well (`cgroups`). The limit on open
    files is raised to the hard one: a session takes four descriptors of the host.
    """

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        tier: str | None = None,
        scan: ScanMode = "strict",
        repair: RepairMode = "small_model",
        echo: str | None = None,
        concurrency: int | None = None,
        _switched_off: Collection[str] = (),
    ) -> None:
        self.limits = limits or Limits()
        self.tier = choose_tier(tier)
        self._switched_off = _switched_off  # for the positive control of the tests, and nothing else
        self._scan, self._repair, self._echo = scan, repair, choose_echo(echo)
        n_calls = concurrency or os.cpu_count() or 1
        self._scratch: str | None = None
        self._removal = ExitStack()
        if self.tier == "lite":
            self._scratch, lock = make_scratch()
            self._removal.callback(os.close, lock)
            self._removal.callback(remove_tree, self._scratch)
        self._counter = count(1)
        self._groups: set[Group] = set()
        self._lock = threading.Lock()  # guards _zygote and _closed: groups are opened from several threads
        self._closed = False
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self._terms = GroupTerms(
            limits=self.limits,
            attest=partial(attest, namespaces=self.tier == "full", seccomp="seccomp" not in _switched_off),
            slots=Slots(n_calls),
            executor=ThreadPoolExecutor(n_calls + _MAX_SLEEPERS, thread_name_prefix="sandbox"),
            meter=Meter(),
            cgroup=open_delegated(os.environ),
            spawner=ThreadPoolExecutor(1, thread_name_prefix="sandbox-spawn"),
            next_slot=partial(next, self._counter),
            # its reference keeps the pool as long as a session lives
            new_folder=partial(self._new_folder, "session", mode=0o700),
        )
        self._zygote = self._start()

    @property
    def pid(self) -> int:
        """Process id of the tree's first process."""
        return self._zygote.pid

    @machine_errors()
    def group(
        self,
        images: Sequence[ImageInput] = (),
        *,
        names: Sequence[str] = (),
        videos: Sequence[VideoInput] = (),
        limits: Limits | None = None,
        repair: RepairMode | None = None,
        rollouts: int = 1,
    ) -> Group:
        """Decode the images once, for all sessions of the group. Videos are decoded by the code, frame by frame.

        `names`: what the prompt calls the images, in their order ("" where it does not); the code can open these names.
        `rollouts`: how many sessions will be asked for; so many are started ahead, in the background.
        Raises ImageUnreadable, InputsTooLarge, ResourcesExhausted, SandboxUnavailable, SandboxClosed.
        """
        if (n_inputs := len(images) + len(videos)) > _MAX_INPUTS:
            raise SandboxError(f"a group has at most {_MAX_INPUTS} images and videos, found {n_inputs}")
        with raised_as(lambda error: SandboxError(str(error)), ValueError):
            check_names(names)
        if videos:
            require_extra("av", "video", "code about videos")
        limits = limits or self.limits
        with open_inputs(images, videos, limits) as fds:
            folder = self._new_folder("inputs")
            request = GroupRequest(
                limits=asdict(limits),
                scan=self._scan,
                repair=repair or self._repair,
                echo=self._echo,
                image_folder=folder or IMAGE_FOLDER,
                n_images=len(images),
                video_suffixes=[suffix_of(video) for video in videos],
                names=list(names),
            )
            with self._lock:
                channel = self._open_group(request, fds)
        group = Group(channel, replace(self._terms, limits=limits), folder, self._groups.discard)
        self._groups.add(group)
        seconds = _START_SECONDS + limits.for_decoding(len(images)).most_wall_seconds
        group.wait_until_ready(seconds, n_ahead=rollouts)
        return group

    agroup = off_loop(group)

    def stats(self) -> PoolStats:
        """Calls, statuses, latencies, queue, sessions and memory. Takes about a millisecond per session."""
        groups = list(self._groups)
        return self._terms.meter.snapshot(
            sessions=sum(group.n_sessions for group in groups),
            spares=sum(group.n_spares for group in groups),
            groups=len(groups),
            pids=[] if self._zygote.ended else processes_below(self.pid),
        )

    def close(self) -> None:
        """End every session, group and process of the pool. Calls that run or wait for their turn end as `broken`."""
        self._closed = True
        for group in list(self._groups):
            group.kill()
        self._zygote.kill()
        with self._lock:
            for group in list(self._groups):
                group.close()
            self._zygote.close()
            if self._terms.cgroup is not None:
                self._terms.cgroup.close()
            self._terms.executor.shutdown(wait=False)  # what waits in it ends at once, with an observation
            self._terms.spawner.shutdown(wait=False, cancel_futures=True)
            self._removal.close()

    @machine_errors()
    def _start(self) -> ZygoteProcess:
        self._terms.meter.count("trees_started")
        home = self._new_folder("warm") or WORK_FOLDER
        return ZygoteProcess(self.tier, home=home, scratch=self._scratch, switched_off=self._switched_off)

    def _open_group(self, request: GroupRequest, fds: list[int]) -> socket.socket:
        if self._closed:
            raise SandboxClosed("the pool is closed")
        near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with far, ExitStack() as unless_sent:
            unless_sent.callback(near.close)
            self._send(request, [far.fileno(), *fds])
            unless_sent.pop_all()
        return near

    def _send(self, request: GroupRequest, fds: list[int]) -> None:
        try:
            self._zygote.send(request, fds)
        except SandboxError as error:
            if self._closed:
                raise SandboxClosed("the pool is closed") from error
            if not isinstance(error, SandboxClosed):
                raise
            self._zygote.close()  # the tree has died: one new tree, and no more
            self._zygote = self._start()
            self._zygote.send(request, fds)

    def _new_folder(self, kind: str, *, mode: int = 0o755) -> str | None:
        """A folder of the host, in the lite tier."""
        if self._scratch is None:
            return None
        folder = f"{self._scratch}/{kind}-{next(self._counter)}"
        os.mkdir(folder)
        os.chmod(folder, mode)  # whatever the umask says
        return folder
