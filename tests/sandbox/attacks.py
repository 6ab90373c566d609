"""Runs one attack in a session and looks, from the host's side, for the effect that it must not have."""

import hashlib
import json
import os
import socket
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from sandbox import Group, Limits, Observation, SandboxPool, Session
from sandbox._guest.config import IMAGE_FOLDER, WORK_FOLDER

CASES = json.loads((Path(__file__).parent / "cases" / "attacks.json").read_text())
ATTACKS = CASES["attacks"]
LIMITS = Limits(**CASES["limits"])
TOKEN = "TOKEN-" + "CANARY-" + hashlib.md5(b"canary").hexdigest()
MARKERS = (Path("/dev/shm/sandbox_attack_marker"), Path("/tmp/sandbox_attack_marker"))
LIBRARY = Path(np.__file__).parent
SLACK_SECONDS = 1.5
SUM_OF_IMAGE = (
    "print(cv2.imread(image_path).sum(), np.asarray(Image.open(image_path)).sum(),"
    " __import__('hashlib').md5(open(image_path,'rb').read()).hexdigest())"
)
# these change their own session's output on purpose; what they print next is their own affair
SELF_HARMING = {
    *("atexit_thread_print", "builtins_override", "monkeypatch_harness", "replace_stdout", "settrace_profile"),
}


class Listeners:
    """Sockets of the host that no attack may reach."""

    def __init__(self, folder: Path) -> None:
        self.n_hits = 0
        self.abstract_name = f"canary-{os.getpid()}"
        self.unix_path = folder / "socket"
        self.tcp = self._listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self.udp = self._listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self._sockets = [
            self.tcp,
            self.udp,
            self._listen(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.abstract_name}"),
            self._listen(socket.AF_UNIX, socket.SOCK_DGRAM, f"\0{self.abstract_name}dgram"),
            self._listen(socket.AF_UNIX, socket.SOCK_STREAM, str(self.unix_path)),
        ]
        self.unix_path.chmod(0o777)

    def close(self) -> None:
        for listener in self._sockets:
            listener.close()

    def _listen(self, family: int, kind: int, address: object) -> socket.socket:
        listener = socket.socket(family, kind)
        listener.bind(address)
        listener.settimeout(0.1)
        if kind == socket.SOCK_STREAM:
            listener.listen(50)
        threading.Thread(target=self._count, args=(listener, kind), daemon=True).start()
        return listener

    def _count(self, listener: socket.socket, kind: int) -> None:
        while listener.fileno() >= 0:
            try:
                if kind == socket.SOCK_DGRAM:
                    listener.recv(10)
                else:
                    listener.accept()[0].close()
                self.n_hits += 1
            except TimeoutError:
                continue
            except OSError:
                return


@dataclass
class Arena:
    """A host with secrets, files and listeners, and a sibling session that must never notice an attack."""

    pool: SandboxPool
    group: Group
    image: Path
    folder: Path
    listeners: Listeners = field(init=False)
    sibling: Session = field(init=False)

    def __post_init__(self) -> None:
        (self.folder / ".ssh").mkdir()
        self.listeners = Listeners(self.folder)
        self.restore()
        self.sibling = self._new_sibling()
        self.pixels = self.sibling.run(SUM_OF_IMAGE).text

    def restore(self) -> None:
        for name in ("victim.txt", "secret.txt", ".ssh/id_canary"):
            (self.folder / name).write_text(TOKEN)
            (self.folder / name).chmod(0o644)
        for marker in MARKERS:
            marker.unlink(missing_ok=True)
        self.listeners.n_hits = 0

    def fill_in(self, code: str) -> str:
        names = {
            "CANARY": self.folder,
            "TCP": self.listeners.tcp.getsockname()[1],
            "UDP": self.listeners.udp.getsockname()[1],
            "ABSTRACT": self.listeners.abstract_name,
            "UNIX": self.listeners.unix_path,
            "HOSTPID": os.getpid(),
            "TOKENENV": "CANARY_SECRET",
            "WORK": WORK_FOLDER,
            "IMAGES": IMAGE_FOLDER,
        }
        for name, value in names.items():
            code = code.replace("{{" + name + "}}", str(value))
        return code

    def close(self) -> None:
        self.sibling.close()
        self.listeners.close()

    def renew_sibling(self) -> None:
        if not self.sibling.alive:
            self.sibling = self._new_sibling()

    def _new_sibling(self) -> Session:
        session = self.group.session(seed=7)
        assert session.run("state = 'kept'").ok
        return session


@dataclass(frozen=True)
class Damage:
    """What one attack came to."""

    status: str
    faults: list[str]


def attack(arena: Arena, case: dict) -> Damage:
    """Run the case; `faults` names every effect that it must not have had."""
    arena.restore()
    arena.renew_sibling()
    before, processes = _snapshots(arena), descendants(arena.pool.pid)
    session = arena.group.session(seed=1)
    started = time.monotonic()
    observation = session.run(arena.fill_in(case["code"]))
    seconds = time.monotonic() - started
    if case["name"] == "thread_writes_between_calls":
        time.sleep(0.6)
    following = session.run("print('AFTER', 1+1)")
    faults = [
        *_faults_of_observation(case, observation, seconds),
        *_faults_of_next_call(case, following),
        *_faults_of_host(arena, case, before),
        *_faults_of_pixels(arena, case, session),
    ]
    session.close()
    faults += _faults_of_processes(arena, processes) + _faults_of_sibling(arena, case)
    return Damage(observation.status, faults)


def descendants(pid: int) -> set[int]:
    found: set[int] = set()
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            pids = {int(child) for child in children.read_text().split()}
        except OSError:
            continue
        found |= pids.union(*(descendants(child) for child in pids))
    return found


def _faults_of_observation(case: dict, observation: Observation, seconds: float) -> list[str]:
    effects, said = case["effects"], observation.text + (observation.error or "")
    raw = [image.pixels.tobytes() for image in observation.images]
    checks = {
        "it said PWNED": "said" in effects and "PWNED" in observation.text,
        "a secret leaked": TOKEN in said or any(TOKEN.encode() in pixels for pixels in raw),
        f"it took {seconds:.1f} s": seconds > LIMITS.seconds + LIMITS.grace + SLACK_SECONDS,
        "too much text": len(said) > 2 * LIMITS.output_chars + 4500,
        "too many images": len(raw) > LIMITS.max_images,
        "too many pixels": sum(map(len, raw)) > LIMITS.reply_mb << 20,
        "it was reported as ok": "notok" in effects and observation.ok,
    }
    return [fault for fault, found in checks.items() if found]


def _faults_of_next_call(case: dict, following: Observation) -> list[str]:
    if "FORGED" in following.text:
        return ["the next call was forged"]
    if following.ok and following.text != "AFTER 2\n" and case["name"] not in SELF_HARMING:
        return [f"the next call got stale text {following.text[:60]!r}"]
    return []


def _faults_of_host(arena: Arena, case: dict, before: dict) -> list[str]:
    after = _snapshots(arena)
    faults = [f"{name} changed" for name in before if after[name] != before[name]]
    if arena.listeners.n_hits:
        faults.append("a socket of the host was reached")
    if any(marker.exists() for marker in MARKERS):
        faults.append("a file was left on the host")
    evil = [
        *LIBRARY.parent.glob("evil.pth"),
        *LIBRARY.parent.glob("sitecustomize.py"),
        *LIBRARY.glob("__pycache__/evil*"),
    ]
    return faults + (["a library folder changed"] if evil else [])


def _faults_of_pixels(arena: Arena, case: dict, session: Session) -> list[str]:
    if "pixels" not in case["effects"]:
        return []
    again = session.run(SUM_OF_IMAGE)
    return ["a fresh open gives other pixels"] if again.ok and again.text != arena.pixels else []


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


def _snapshots(arena: Arena) -> dict[str, tuple]:
    files = {"victim": arena.folder / "victim.txt", "image": arena.image, "library": LIBRARY / "__init__.py"}
    return {name: _snapshot(path) for name, path in files.items()}


def _snapshot(path: Path) -> tuple:
    if not path.exists():
        return ()
    status = path.stat()
    return hashlib.md5(path.read_bytes()).hexdigest(), status.st_mode, status.st_uid, status.st_nlink


def canary_folder() -> Path:
    """Outside the test's own folder, which only root may enter: the attack must fail for a better reason."""
    folder = Path(tempfile.mkdtemp(prefix="canary-"))
    folder.chmod(0o755)
    return folder
