"""The fork tree: the zygote holds the warm libraries, a group the decoded images of one prompt, a session one rollout.
Zygote and groups run nothing that a model or a data set wrote."""

import errno
import gc
import importlib
import json
import os
import signal
import socket
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

from darkroom.sandbox._guest import lockdown
from darkroom.sandbox._guest.decode import RefusedInput, decode_images, exhausted, inputs_folder, store_videos
from darkroom.sandbox._guest.messages import (
    IMAGE_FOLDER,
    WORK_FOLDER,
    GroupRequest,
    Identity,
    SessionRequest,
    ZygoteConfig,
    brief,
    send,
)
from darkroom.sandbox._guest.names import ImageLinks
from darkroom.sandbox._guest.patched_modules import import_libraries
from darkroom.sandbox._guest.proc import Proc
from darkroom.sandbox._guest.runner import Runner
from darkroom.sandbox._guest.shared import Inputs, share
from darkroom.sandbox._kernel import syscalls
from darkroom.sandbox._kernel.seccomp import build_filter
from darkroom.sandbox.limits import Limits

_MAX_MESSAGE = 1 << 16
_MAX_FDS = 250
_INIT = 1
_N_SESSION_FDS = 2
_MAX_PROCESS_ID = 400
"""Threads have such numbers too. Where all sessions have one uid, RLIMIT_NPROC must hold for all of them together."""


@dataclass(frozen=True)
class Tree:
    """Facts that every process of the tree knows."""

    config: ZygoteConfig
    identity: Identity
    proc: Proc
    pid_namespace: int
    session_filter: bytes | None
    """Built once for all sessions of the full tier, in which each is process 1 of its own namespace."""


def serve(control: socket.socket, config: ZygoteConfig, identity: Identity, proc: Proc) -> NoReturn:
    """Warm up, check that a fork is safe, and fork a group for each request until the host hangs up."""
    import_libraries()
    if config.namespaces:
        syscalls.unmount(WORK_FOLDER)
    gc.collect()
    gc.freeze()
    gc.disable()
    _require_one_thread(proc)
    session_filter = build_filter(metadata_calls=True, process_id=_INIT) if config.namespaces else None
    tree = Tree(config, identity, proc, proc.pid_namespace(), session_filter)
    _tell(control, {"ready": True})
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps: no zombie, and a stopped session wakes no process
    while True:
        request, fds = _receive(control)
        if not fds:  # no descriptor was free: the channel has ended with the message, and the host knows
            continue
        try:
            if os.fork() == 0:
                control.close()
                _as_child(partial(_serve_group, tree, GroupRequest(**request), fds))
        except OSError as error:  # no process or no memory is left: the other groups go on
            with socket.socket(fileno=fds.pop(0)) as channel:
                _tell(channel, exhausted(error))
        _close(fds)


def _require_one_thread(proc: Proc) -> None:
    if (n_threads := proc.n_threads()) != 1:
        raise RuntimeError(f"a library started threads at import: {n_threads} run, a forked session would hang")


def _serve_group(tree: Tree, request: GroupRequest, fds: list[int]) -> NoReturn:
    channel, limits = socket.socket(fileno=fds[0]), Limits(**request.limits)
    syscalls.die_with_parent()
    if tree.config.namespaces:
        syscalls.unshare(syscalls.CLONE_NEWNS)
    own = ("/etc", os.path.dirname(IMAGE_FOLDER)) if tree.config.namespaces else (request.image_folder,)
    cage = lockdown.Cage(
        limits=limits,
        identity=tree.identity,
        namespaces=tree.config.namespaces,
        readable=(*tree.config.read_only, "/dev/urandom", "/dev/random", "/dev/zero", *own),
        base_bytes=tree.proc.address_space(),
        switched_off=frozenset(tree.config.switched_off),
    )
    inputs = _take_in(cage, tree.proc, request, channel, fds[1:])
    runner = Runner(limits, inputs, scan=request.scan, repair=request.repair, echo=request.echo)
    _close(fds[1:])
    _require_one_thread(tree.proc)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    _hand_over(os.getpid(), channel)
    while True:
        session, session_fds = _receive(channel)
        try:
            if len(session_fds) != _N_SESSION_FDS:
                raise OSError(errno.EMFILE, "the descriptors of a session did not arrive")
            _hand_over(_fork_session(tree, cage, SessionRequest(**session), session_fds, runner), channel)
        except OSError as error:  # no process or no memory is left: the siblings go on
            _tell(channel, exhausted(error))
        _close(session_fds)


def _take_in(cage: lockdown.Cage, proc: Proc, request: GroupRequest, channel: socket.socket, fds: list[int]) -> Inputs:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    n_images = request.n_images
    try:
        if len(fds) != n_images + len(request.video_suffixes):
            raise OSError(errno.EMFILE, "not every input arrived")
        with inputs_folder(fds, namespaces=cage.namespaces):
            videos = store_videos(fds[n_images:], request.video_suffixes, request.image_folder)
            decoded = decode_images(cage, proc, fds[:n_images], request.image_folder)
        if videos:
            importlib.import_module("darkroom.sandbox._guest.video_frames")  # PyAV, once for all sessions
        links = ImageLinks(request.names, [image.path for image in decoded])
        return Inputs([share(image) for image in decoded], videos, links)
    except RefusedInput as refusal:
        _tell(channel, refusal.answer)
    except (OSError, MemoryError) as error:
        _tell(channel, exhausted(error))
    os._exit(0)


def _fork_session(tree: Tree, cage: lockdown.Cage, request: SessionRequest, fds: list[int], runner: Runner) -> int:
    """Fork a session, where there are namespaces as the init of its own pid namespace."""
    if cage.namespaces:
        syscalls.unshare(syscalls.CLONE_NEWPID)  # holds for the next child, not for us
    try:
        pid = syscalls.fork_bare()
        if pid == 0:
            _as_child(partial(_run_session, tree, cage, request, fds, runner))
    finally:
        if cage.namespaces:
            syscalls.setns(tree.pid_namespace, syscalls.CLONE_NEWPID)
    return pid


def _run_session(tree: Tree, cage: lockdown.Cage, request: SessionRequest, fds: list[int], runner: Runner) -> NoReturn:
    fd, window_fd = fds
    try:
        n_bytes = cage.limits.reply_mb << 20
        window = syscalls.bytes_at(syscalls.map_file(window_fd, n_bytes, shared=True), n_bytes)
        cage = replace(
            cage,
            base_bytes=tree.proc.address_space(),  # with the window
            slot=request.slot,
            work_folder=request.work_folder,
            filter=tree.session_filter,
        )
        if cage.namespaces:
            tree.proc.limit_processes(_MAX_PROCESS_ID)
        lockdown.lock_down(cage, {fd})
        runner.begin(request.work_folder)
        lockdown.seal(cage)
    except BaseException as error:
        send(fd, request.nonce, {"failed": brief(error)})
        raise
    runner.serve(fd, request.nonce, window)


def _hand_over(pid: int, channel: socket.socket) -> None:
    """Give the host a pidfd of the group, which is ready then, or of a new session."""
    pidfd = os.pidfd_open(pid)
    socket.send_fds(channel, [b"{}"], [pidfd])
    os.close(pidfd)


def _tell(channel: socket.socket, fields: dict[str, Any]) -> None:
    channel.send(json.dumps(fields).encode())


def _receive(control: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The next request; the process ends when the host hangs up."""
    message, fds, _, _ = socket.recv_fds(control, _MAX_MESSAGE, _MAX_FDS, socket.MSG_CMSG_CLOEXEC)
    if not message:
        os._exit(0)
    return json.loads(message), fds


def _as_child(work: Callable[[], NoReturn]) -> NoReturn:
    """A forked child never returns into its parent's loop, whatever happens."""
    try:
        work()
    except BaseException:  # noqa: BLE001 - the host sees the channel close, and the log of the zygote says why
        traceback.print_exc()
    os._exit(1)


def _close(fds: list[int]) -> None:
    for fd in fds:
        os.close(fd)
