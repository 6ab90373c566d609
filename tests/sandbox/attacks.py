"""Runs one attack in a session and looks, from the host's side, for the effect that it must not have.

The cases are `cases/attacks*.json`. A case may say, beside the fields that all of them have:

    sibling          code that another session of the group runs while the attacker lives; it prints PWNED if it notices
    pause            seconds between the attack and the next call of its session
    harms_itself     it changes the output of its own session on purpose: what that prints next is its own affair
    weak_in_lite     why the lite tier cannot prevent it
    weak_as_ordinary_user
                     why neither tier can prevent it where the host is no root and the kernel older than Linux 6.14
    escapes_without  the protections of which each alone, switched off in the lite tier, lets it have its effect
"""

import hashlib
import json
import os
import socket
import threading
import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import pytest

from darkroom.sandbox import Limits, Observation, Session
from darkroom.sandbox._guest.messages import IMAGE_FOLDER, WORK_FOLDER
from tests.sandbox.arena import FOLDERS_BACKWARDS, LIBRARY, MARKERS, SUM_OF_IMAGE, TOKEN, Arena, descendants

_FILES = [json.loads(path.read_text()) for path in sorted((Path(__file__).parent / "cases").glob("attacks*.json"))]
ATTACKS: list[dict] = [case for file in _FILES for case in file["attacks"]]
LIMITS = Limits(**_FILES[0]["limits"])
# what the host's own work may take by the clock on the wall, on a machine that others keep busy
SLACK_SECONDS = 30.0
# by that clock no call may take longer than its ceiling; what it is charged is less
_MAX_SECONDS = LIMITS.wall_ceiling * (LIMITS.seconds + LIMITS.grace) + SLACK_SECONDS
_MAX_NAME = 256


@dataclass(frozen=True)
class Damage:
    """What one attack came to."""

    status: str
    faults: list[str]


@dataclass(frozen=True)
class _Host:
    """What of the host must be the same afterwards."""

    files: dict[str, tuple]
    null_device: tuple
    n_descriptors: int
    n_threads: int


def attack(arena: Arena, case: dict) -> Damage:
    """Run the case; `faults` names every effect that it must not have had."""
    arena.restore()
    arena.renew_sibling()
    host, processes = _look_at_host(arena), descendants(arena.pool.pid)
    session = (arena.patient if must_end_for_memory(case) else arena.group).session(seed=1)
    work_folder, image_folder = _folders(arena, session)
    code = arena.fill_in(case["code"], work_folder=work_folder, image_folder=image_folder)
    observation, seconds = _timed_run(session, code)
    time.sleep(case.get("pause", 0))
    following, following_seconds = _timed_run(session, "print('AFTER', 1+1)")
    faults = [
        *_faults_of_observation(case, observation, seconds),
        *_faults_of_next_call(case, following, following_seconds),
        *_faults_of_pixels(arena, case, session),
        *_faults_of_board(arena, case),
        *_faults_of_end(arena, session, work_folder),
        *_faults_of_processes(arena, processes),
        *_faults_of_sibling(arena, case),
        *_faults_of_host(arena, case, host),
    ]
    return Damage(observation.status, faults)


def must_end_for_memory(case: dict) -> bool:
    return "memory" in case["acceptable_status"] and not {"timeout", "ok"} & set(case["acceptable_status"])


def skip_where_it_is_known_to_succeed(arena: Arena, case: dict) -> None:
    kernel = tuple(int(part) for part in os.uname().release.split(".")[:2])
    if os.geteuid() != 0 and "weak_as_ordinary_user" in case and (arena.pool.tier == "lite" or kernel < (6, 14)):
        pytest.skip(case["weak_as_ordinary_user"])


def _timed_run(session: Session, code: str) -> tuple[Observation, float]:
    started = time.monotonic()
    observation = session.run(code)
    return observation, time.monotonic() - started


def _folders(arena: Arena, session: Session) -> tuple[str, str]:
    """Where the session works and finds its images: in the lite tier, folders of the host."""
    if arena.pool.tier == "full":
        return WORK_FOLDER, IMAGE_FOLDER
    work_folder, image_folder = session.run(FOLDERS_BACKWARDS).text.split()
    return work_folder[::-1], image_folder[::-1]


def _faults_of_observation(case: dict, observation: Observation, seconds: float) -> list[str]:
    effects, said = case["effects"], observation.text + (observation.error or "")
    raw = [image.pixels.tobytes() for image in observation.images]
    names = [*(image.name for image in observation.images), *(artefact.name for artefact in observation.artefacts)]
    checks = {
        "it said PWNED": "said" in effects and "PWNED" in observation.text,
        "a secret leaked": TOKEN in said or any(TOKEN.encode() in pixels for pixels in raw),
        "the name of the host leaked": "hostname" in effects and socket.gethostname() in said.split(),
        f"it took {seconds:.1f} s": seconds > _MAX_SECONDS,
        "too much text": len(said) > 2 * LIMITS.output_chars + 4500,
        "too many images": len(raw) > LIMITS.max_images,
        "too many pixels": sum(map(len, raw)) > LIMITS.reply_mb << 20,
        "its text cannot be stored": not all(map(_is_storable, [said, *names])),
        "a name leads out of its folder": any(map(_leads_out, names)),
        "it was reported as ok": "notok" in effects and observation.ok,
    }
    return [fault for fault, found in checks.items() if found]


def _is_storable(text: str) -> bool:
    return "\0" not in text and not any("\ud800" <= character <= "\udfff" for character in text)


def _leads_out(name: str) -> bool:
    return name.startswith("/") or ".." in PurePosixPath(name).parts or len(name) > _MAX_NAME


def _faults_of_next_call(case: dict, following: Observation, seconds: float) -> list[str]:
    faults = [f"the next call took {seconds:.1f} s"] if seconds > _MAX_SECONDS else []
    if "FORGED" in following.text:
        return [*faults, "the next call was forged"]
    if following.ok and following.text != "AFTER 2\n" and not case.get("harms_itself"):
        return [*faults, f"the next call got stale text {following.text[:60]!r}"]
    return faults


def _faults_of_pixels(arena: Arena, case: dict, session: Session) -> list[str]:
    if "pixels" not in case["effects"]:
        return []
    again = session.run(SUM_OF_IMAGE)
    return ["a fresh open gives other pixels"] if again.ok and again.text != arena.pixels else []


def _faults_of_board(arena: Arena, case: dict) -> list[str]:
    if "sibling" not in case:
        return []
    seen = arena.sibling.run(case["sibling"])
    return [f"the sibling noticed it: {seen.status} {seen.text!r}"] if not seen.ok or "PWNED" in seen.text else []


def _faults_of_end(arena: Arena, session: Session, work_folder: str) -> list[str]:
    started = time.monotonic()
    session.close()
    checks = {
        "its end took long": time.monotonic() - started > SLACK_SECONDS,
        "its folder was left": arena.pool.tier == "lite" and os.path.lexists(work_folder),
    }
    return [fault for fault, found in checks.items() if found]


def _faults_of_processes(arena: Arena, before: set[int]) -> list[str]:
    deadline = time.monotonic() + SLACK_SECONDS
    while descendants(arena.pool.pid) - before and time.monotonic() < deadline:
        time.sleep(0.02)
    now = descendants(arena.pool.pid)
    return (["a process survived"] if now - before else []) + (["a process of the tree died"] if before - now else [])


def _faults_of_sibling(arena: Arena, case: dict) -> list[str]:
    seen = arena.sibling.run("print(state)\n" + SUM_OF_IMAGE)
    faults = [] if seen.ok and seen.text == "kept\n" + arena.pixels else [f"the sibling saw {seen.status} {seen.error}"]
    if "crossfile" in case["effects"]:
        names = f"print(os.path.exists('{WORK_FOLDER}/shared_marker'), os.path.exists('/tmp/shared_marker'))"
        if arena.sibling.run(names).text != "False False\n":
            faults.append("a file crossed from session to session")
    return faults


def _faults_of_host(arena: Arena, case: dict, before: _Host) -> list[str]:
    evil = [
        *LIBRARY.parent.glob("evil.pth"),
        *LIBRARY.parent.glob("sitecustomize.py"),
        *LIBRARY.glob("__pycache__/evil*"),
    ]
    after = _look_at_host(arena)
    checks = {
        **{f"{name} changed": after.files[name] != status for name, status in before.files.items()},
        # only where the case tries it: any program of the machine may touch the device
        "/dev/null changed": "device" in case["effects"] and after.null_device != before.null_device,
        "a library folder changed": bool(evil),
        "a socket of the host was reached": arena.listeners.n_hits > 0,
        "a file was left on the host": any(marker.exists() for marker in MARKERS),
        "descriptors of the host were left open": after.n_descriptors > before.n_descriptors,
        "threads of the host were left": after.n_threads > before.n_threads,
    }
    return [fault for fault, found in checks.items() if found]


def _look_at_host(arena: Arena) -> _Host:
    files = {"victim": arena.folder / "victim.txt", "image": arena.image}
    # without the number of its links: an installer of packages links the same file into other environments
    *library, _links, changed_at = _snapshot(LIBRARY / "__init__.py")
    return _Host(
        files={
            **{name: _snapshot(path) for name, path in files.items()},
            "library": (*library, changed_at),
            "the folder of the canary": tuple(sorted(os.listdir(arena.folder))),
        },
        null_device=_metadata(Path("/dev/null")),
        n_descriptors=len(os.listdir("/proc/self/fd")),
        n_threads=threading.active_count(),
    )


def _snapshot(path: Path) -> tuple:
    return (hashlib.md5(path.read_bytes()).hexdigest(), *_metadata(path)) if path.exists() else ()


def _metadata(path: Path) -> tuple:
    status = path.stat()
    return status.st_mode, status.st_uid, status.st_nlink, status.st_mtime_ns
