"""A host with secrets, files and listeners, and a sibling session: what an attack must leave as it is."""

import hashlib
import os
import re
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from PIL import Image

from darkroom.sandbox import Group, Limits, SandboxPool, Session

TOKEN = "TOKEN-" + "CANARY-" + hashlib.md5(b"canary").hexdigest()
MARKERS = (Path("/dev/shm/sandbox_attack_marker"), Path("/tmp/sandbox_attack_marker"))
LIBRARY = Path(np.__file__).parent
SUM_OF_IMAGE = (
    "print(cv2.imread(image_path).sum(), np.asarray(Image.open(image_path)).sum(),"
    " __import__('hashlib').md5(open(image_path,'rb').read()).hexdigest())"
)
# written backwards, because an observation hides the folders of the host
FOLDERS_BACKWARDS = "import os\nprint(os.getcwd()[::-1])\nprint(os.path.dirname(image_path)[::-1])"
_REPEAT = re.compile(r"\{\{REPEAT:(\d+):(.+?)\}\}", re.DOTALL)


class Listeners:
    """Sockets of the host that no attack may reach."""

    def __init__(self, folder: Path) -> None:
        self.n_hits = 0
        self.abstract_name = f"canary-{os.getpid()}-{folder.name}"
        self.unix_path, self.datagram_path = folder / "socket", folder / "datagrams"
        self.tcp = self._listen(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self.udp = self._listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self._sockets = [
            self.tcp,
            self.udp,
            self._listen(socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.abstract_name}"),
            self._listen(socket.AF_UNIX, socket.SOCK_DGRAM, f"\0{self.abstract_name}dgram"),
            self._listen(socket.AF_UNIX, socket.SOCK_STREAM, str(self.unix_path)),
            self._listen(socket.AF_UNIX, socket.SOCK_DGRAM, str(self.datagram_path)),
        ]
        self.unix_path.chmod(0o777)
        self.datagram_path.chmod(0o777)

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
    patient: Group
    """For code that only its memory may end: on a cold machine the first touch of 512 MiB takes seconds of CPU time."""
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
            (self.folder / name).unlink(missing_ok=True)  # an attack of a control may have made it unwritable
            (self.folder / name).write_text(TOKEN)
            (self.folder / name).chmod(0o644)
        secret_image().save(self.folder / "secret.png")
        for marker in MARKERS:
            marker.unlink(missing_ok=True)
        self.listeners.n_hits = 0

    def fill_in(self, code: str, *, work_folder: str, image_folder: str) -> str:
        """The code with every {{NAME}} replaced and every {{REPEAT:times:text}} written out."""
        names = {
            "CANARY": self.folder,
            "TCP": self.listeners.tcp.getsockname()[1],
            "UDP": self.listeners.udp.getsockname()[1],
            "ABSTRACT": self.listeners.abstract_name,
            "UNIX": self.listeners.unix_path,
            "DATAGRAMS": self.listeners.datagram_path,
            "HOSTPID": os.getpid(),
            "TOKENENV": "CANARY_SECRET",
            "WORK": work_folder,
            "IMAGES": image_folder,
            "PHOTO": self.image.stem[::-1],
        }
        for name, value in names.items():
            code = code.replace("{{" + name + "}}", str(value))
        return _REPEAT.sub(lambda match: match[2] * int(match[1]), code)

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


def secret_image() -> Image.Image:
    """Its raw pixels are the token, over and over."""
    data = (TOKEN.encode() * 40)[: 12 * 30 * 3]
    return Image.frombytes("RGB", (30, 12), data)


def descendants(pid: int) -> set[int]:
    return {process.pid for process in psutil.Process(pid).children(recursive=True)}


@contextmanager
def open_arena(image: Path, limits: Limits, **pool_options: Any) -> Iterator[Arena]:
    # outside the test's own folder, which only root may enter: the attack must fail for a better reason
    folder = Path(tempfile.mkdtemp(prefix="canary-"))
    folder.chmod(0o755)
    try:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("CANARY_SECRET", TOKEN)
            with SandboxPool(limits=limits, **pool_options) as pool, pool.group([image]) as group:
                slow = replace(limits, seconds=4 * limits.seconds)
                patient = pool.group([image], limits=slow)
                patient.session().close()  # with the first one the group opens what it keeps, and its spare ends
                arena = Arena(pool, group, patient, image, folder)
                yield arena
                arena.close()
    finally:
        shutil.rmtree(folder)
