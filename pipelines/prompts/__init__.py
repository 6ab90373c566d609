"""Prompts are text files: YAML front matter (name, version, slots), then a body with one part per role.

    ---
    name: crop
    version: 1
    slots: [question, box]
    ---
    # system
    …
    # user
    Question: {{ question }}

Slots are filled by Jinja; a slot that is declared and not given, or used and not declared, is an error. A prompt's
version of record is the digest of its file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import yaml

from pipelines.digest import digest_bytes

_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n(.*)\Z", re.DOTALL)
_PART = re.compile(r"^# (system|user)$", re.MULTILINE)
_JINJA = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=False, autoescape=False)


class PromptFault(Exception):
    """A prompt's file or its use is wrong: which prompt, what was expected, what was found."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt as its file has it; ``digest`` identifies it in provenance and in the ledger."""

    name: str
    version: int
    slots: frozenset[str]
    system: str
    user: str
    digest: str

    def render(self, **values: Any) -> tuple[str, str]:
        """The system and the user text. Raises ``PromptFault`` unless exactly the declared slots are given."""
        if values.keys() != self.slots:
            missing, unknown = self.slots - values.keys(), values.keys() - self.slots
            raise PromptFault(f"prompt {self.name}: slots missing {sorted(missing)}, unknown {sorted(unknown)}")
        try:
            return _fill(self.system, values), _fill(self.user, values)
        except jinja2.UndefinedError as fault:
            raise PromptFault(f"prompt {self.name}: {fault}; declare the slot in the front matter") from fault


@cache
def load_prompt(path: Path) -> Prompt:
    """The prompt in a file. Raises ``PromptFault`` when the file is not one."""
    data = path.read_bytes()
    matched = _FRONT_MATTER.match(data.decode())
    if matched is None:
        raise PromptFault(f"{path}: expected front matter between two lines of '---'")
    head: dict[str, Any] = yaml.safe_load(matched[1])
    if missing := {"name", "version", "slots"} - head.keys():
        raise PromptFault(f"{path}: the front matter lacks {sorted(missing)}")
    parts = _PART.split(matched[2])
    bodies = {role: text.strip() for role, text in zip(parts[1::2], parts[2::2], strict=True)}
    return Prompt(
        name=head["name"],
        version=head["version"],
        slots=frozenset(head["slots"]),
        system=bodies.get("system", ""),
        user=bodies.get("user", ""),
        digest=digest_bytes(data),
    )


def bundled_prompt(name: str) -> Prompt:
    """A prompt that ships with the toolkit: ``pipelines/prompts/<name>.md``."""
    return load_prompt(Path(__file__).with_name(f"{name}.md"))


def _fill(text: str, values: dict[str, Any]) -> str:
    return _JINJA.from_string(text).render(values)
