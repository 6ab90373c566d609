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

Slots are filled by Jinja; a slot that is declared and not given, or used and not declared, is an error, and so is text
before the first part. A prompt's version of record is the digest of its file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta
import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from pipelines.digest import digest_bytes

_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n(.*)\Z", re.DOTALL)
_PART = re.compile(r"^# (system|user)$", re.MULTILINE)
_JINJA = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=False, autoescape=False)


class PromptFault(Exception):
    """A prompt's file or its use is wrong: which prompt, what was expected, what was found."""


class _FrontMatter(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    version: int
    slots: list[str]


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
            raise PromptFault(f"prompt {self.name}: {fault}") from fault


@cache
def load_prompt(path: Path) -> Prompt:
    """The prompt in a file. Raises ``PromptFault`` when the file is not one."""
    try:
        data = path.read_bytes()
        matched = _FRONT_MATTER.match(data.decode().replace("\r\n", "\n"))
    except (OSError, UnicodeDecodeError) as fault:
        raise PromptFault(f"{path} cannot be read: {fault}") from fault
    if matched is None:
        raise PromptFault(f"{path}: expected front matter between two lines of '---'")
    head, bodies = _front_matter(path, matched[1]), _bodies(path, matched[2])
    undeclared = {name for body in bodies.values() for name in _used(path, body)} - set(head.slots)
    if undeclared:
        raise PromptFault(f"{path}: the text uses {sorted(undeclared)}; declare them as slots in the front matter")
    return Prompt(
        name=head.name,
        version=head.version,
        slots=frozenset(head.slots),
        system=bodies.get("system", ""),
        user=bodies["user"],
        digest=digest_bytes(data),
    )


def bundled_prompt(name: str) -> Prompt:
    """A prompt that ships with the toolkit: ``pipelines/prompts/<name>.md``."""
    return load_prompt(Path(__file__).with_name(f"{name}.md"))


def _front_matter(path: Path, text: str) -> _FrontMatter:
    try:
        return _FrontMatter.model_validate(yaml.safe_load(text))
    except ValidationError as fault:
        first = fault.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the front matter"
        raise PromptFault(f"{path}: {where}: {first['msg']}") from fault
    except yaml.YAMLError as fault:
        raise PromptFault(f"{path}: the front matter is not YAML: {fault}") from fault


def _bodies(path: Path, text: str) -> dict[str, str]:
    before, *parts = _PART.split(text)
    roles = parts[::2]
    if before.strip() or "user" not in roles or len(set(roles)) != len(roles):
        raise PromptFault(f"{path}: expected '# system' (if any) and '# user', each once and first; found {roles}")
    return {role: body.strip() for role, body in zip(roles, parts[1::2], strict=True)}


def _used(path: Path, body: str) -> set[str]:
    try:
        return jinja2.meta.find_undeclared_variables(_JINJA.parse(body))
    except jinja2.TemplateSyntaxError as fault:
        raise PromptFault(f"{path}: {fault.message}") from fault


def _fill(text: str, values: dict[str, Any]) -> str:
    return _template(text).render(values).strip()


@cache
def _template(text: str) -> jinja2.Template:
    """Compiled once: that takes longer than all else that is done to ask a question."""
    return _JINJA.from_string(text)
