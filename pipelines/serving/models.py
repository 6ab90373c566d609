"""Which model is served: a name on the hub, or a folder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pipelines.digest import digest
from pipelines.serving.faults import ServingFault

_COMMIT = re.compile(r"[0-9a-f]{40}")
HUB_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?")


@dataclass(frozen=True, slots=True)
class ServedModel:
    """A model by the name under which it is asked for: the hub's, or the folder's absolute path."""

    name: str
    is_folder: bool = False
    revision: str = ""
    """For a folder: changes when a file in it does, since training writes another model under the same name."""

    @classmethod
    def parse(cls, text: str) -> ServedModel:
        """A folder if there is one, else a name on the hub. Raises ``ServingFault``."""
        folder = Path(text).expanduser()
        if text and folder.is_dir():
            return cls(str(folder.resolve()), is_folder=True, revision=_fingerprint(folder))
        if not HUB_NAME.fullmatch(text):
            raise ServingFault(f"MODEL is a folder or a hub name like Qwen/Qwen3-VL-8B-Instruct; {text!r} is neither")
        return cls(text)

    def require_weights(self) -> None:
        """Raises ``ServingFault`` for a folder that holds no model."""
        if self.is_folder and not (Path(self.name) / "config.json").is_file():
            raise ServingFault(f"{self.name} has no config.json: MODEL is the folder that holds it and the weights")


def hub_revision(name: str, options: Sequence[str]) -> str:
    """The commit of a hub model that was just loaded: what ``--revision`` names (default: main), in the hub's cache.

    Empty where the cache does not tell: another download folder, a server without a cache.
    """
    from huggingface_hub.constants import HF_HUB_CACHE

    wanted = _value_of("--revision", options) or "main"
    if _COMMIT.fullmatch(wanted):
        return wanted
    ref = Path(HF_HUB_CACHE) / f"models--{name.replace('/', '--')}" / "refs" / wanted
    return ref.read_text().strip() if ref.is_file() else ""


def _value_of(flag: str, options: Sequence[str]) -> str:
    """What the last ``--flag value`` or ``--flag=value`` says."""
    found = [option.partition("=")[2] for option in options if option.startswith(f"{flag}=")]
    found += [value for option, value in pairwise(options) if option == flag]
    return found[-1] if found else ""


def _fingerprint(folder: Path) -> str:
    """Names, sizes and times: weights are too large to be read for it."""
    facts = [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in folder.iterdir() if path.is_file()]
    return digest(sorted(facts))[:12]
