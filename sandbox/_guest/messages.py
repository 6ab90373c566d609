"""JSON messages between the host and the processes of the sandbox, and the session's end of its socket.

The form of a session's requests and replies: `darkroom.sandbox.frames`.
"""

import json
import os
import signal
import struct
import sys
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from darkroom.sandbox.limits import EchoMode

ScanMode = Literal["strict", "own_files", "off"]
"""own_files: the code may delete, move and rename; only the session's own files are within its reach anyway."""
RepairMode = Literal["small_model", "off"]
"""small_model: the rewrites of Thyme's appendix A, each of them reported. off: the code runs as it was written."""
CELL_PREFIX = "<cell"
"""Compiled code of the model is named `<cell 0>`, `<cell 1>`, …"""
WORK_FOLDER = "/mnt/data/temp_processed_images"
"""Where the code runs and saves (the folder that Thyme's prompts name)."""
IMAGE_FOLDER = "/mnt/data/input_images"
INTERRUPT = signal.SIGRTMIN + 3
"""What the host sends when a call's time is up. Not SIGALRM: the code may have an alarm of its own."""
_MAX_REASON = 2000
_encode = json.JSONEncoder(ensure_ascii=False).encode  # whatever the code puts in the place of `json.dumps`


@dataclass(frozen=True)
class ZygoteConfig:
    """Sent once, when the pool starts."""

    namespaces: bool
    """True: the full tier. False: the lite tier: Landlock, seccomp and rlimits only."""
    read_only: list[str]
    """Host folders and files that hold the interpreter and the libraries."""
    host_pidfd: int
    scratch: str | None
    """Folder of the host that holds those of all sessions, in the lite tier; it ends with the host."""
    switched_off: list[str]
    """Of "seccomp" and "Landlock": what the positive control of the tests does without. Empty for everybody else."""
    libraries: list[str]
    """Top-level modules that an error lists."""
    importable: list[str]
    """All of them that can be imported, beside Python's own."""


@dataclass(frozen=True)
class GroupRequest:
    """One prompt. Its channel, its images and its videos travel beside it as file descriptors, in this order."""

    limits: dict[str, Any]
    scan: ScanMode
    repair: RepairMode
    echo: EchoMode
    image_folder: str
    n_images: int
    video_suffixes: list[str]
    names: list[str] = field(default_factory=list)
    """What the prompt calls the images (`names`)."""


@dataclass(frozen=True)
class SessionRequest:
    """One rollout. Its channel and the memory for its pixels travel beside it as file descriptors."""

    slot: int
    nonce: int
    work_folder: str


@dataclass(frozen=True)
class Identity:
    """The uids that sessions may take; `is_root` False: there is only the user's own, so there is no choice."""

    is_root: bool
    first_uid: int = 0
    n_uids: int = 1


@dataclass(frozen=True)
class DecodedImage:
    """An input image that the group decoded once, for all of its sessions."""

    path: str
    width: int
    height: int
    mode: str
    pixels_fd: int
    """Sealed memfd with Pillow's raw pixels; -1 where each open decodes for itself."""
    bgr_fd: int
    """Sealed memfd with what `cv2.imread(path)` returns, or -1."""
    bgr_shape: tuple[int, ...]


def brief(error: BaseException) -> str:
    """Describe an own error to the host: `OSError: [Errno 30] Read-only file system (proc.py, line 33)`."""
    *_, (frame, number) = traceback.walk_tb(error.__traceback__)
    text = f"{type(error).__name__}: {error}"[:_MAX_REASON]
    return f"{text} ({os.path.basename(frame.f_code.co_filename)}, line {number})"


@cache
def note(text: str) -> None:
    """Tell the code's author something beside what the code prints, once per session."""
    with suppress(Exception):  # the code may have put anything in its place
        sys.stderr.write(f"note: {text}\n")


HEADER = struct.Struct("<QI")
"""The header of every frame, on both sides: the call's nonce (64 random bits) and the length of the JSON or code that
follows."""


def next_frame(fd: int) -> tuple[int, bytes]:
    """Nonce and payload of the next request. The process ends where the host has hung up."""
    nonce, length = HEADER.unpack(_read(fd, HEADER.size))
    return nonce, _read(fd, length)


def send(fd: int, nonce: int, fields: dict[str, Any]) -> None:
    payload = _encode(fields).encode("utf-8", "surrogatepass")  # half as long as with escapes
    view = memoryview(HEADER.pack(nonce, len(payload)) + payload)
    while view:
        view = view[os.write(fd, view) :]


def _read(fd: int, length: int) -> bytes:
    data = bytearray()
    while len(data) < length:
        try:
            part = os.read(fd, min(length - len(data), 1 << 20))
        except BaseException as error:
            if getattr(error, "errno", None) is not None:  # the kernel's: the code has closed the channel
                raise
            continue  # by a handler that a thread of the code armed: nothing was read
        if not part:
            os._exit(0)
        data += part
    return bytes(data)
