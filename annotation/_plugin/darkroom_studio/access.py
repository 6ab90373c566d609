"""Access: roles (Django groups ``darkroom:<role>``), the rounds that each may open, and the table ``access.yaml``.

A project's description names its round, and the roles if not all of the round's have it: ``darkroom
cross_check:checker …``. The table says who may call a route, with which parameters, and what they get of its answer:

    - {route: "api/tasks/<int:pk>/", methods: [GET], parameters: {project}, own: {pk: task}, answer: task}

A route is named as Django's resolver names it, so that no spelling of an address is classified differently from the
view that answers it. One that is not in the table is closed to everybody but staff.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

ROLES = ("annotator", "checker", "expert")
OPEN_TO = {
    "annotate": ("annotator",),
    "cross_check": ("annotator", "checker"),
    "rework": ("annotator",),
    "accept": ("expert",),
    "review": ("expert",),
    "verify": ("annotator", "checker", "expert"),
    "suitability": ("annotator", "expert"),
}
UNKNOWN = "Authentication credentials were not provided or are wrong."
FORBIDDEN = "Only the admin of this server may do that."

FREE_FAILURES, FIRST_WAIT, LONGEST_WAIT = 5, 30, 900
"""Wrong passwords without a wait, and the seconds to wait after that, twice as long each time."""

FILE = Path(__file__).with_name("access.yaml")
Owned = Literal["account", "annotation", "draft", "project", "task"]


def role_of(user: Any) -> str:
    names = [group.name for group in user.groups.all() if group.name.startswith("darkroom:")]
    return names[0].removeprefix("darkroom:") if names else ""


def round_of(project: Any) -> str:
    """The round of a project; empty for another team's project."""
    return _opening(project)[0]


def campaign_of(project: Any) -> str:
    return (project.description or "").partition(" ")[2].partition(" ")[2]


def open_roles(project: Any) -> tuple[str, ...]:
    round, narrowed = _opening(project)
    return tuple(role for role in OPEN_TO.get(round, ()) if not narrowed or role in narrowed)


def is_open(project: Any, user: Any) -> bool:
    return user.is_staff or not round_of(project) or role_of(user) in open_roles(project)


def _opening(project: Any) -> tuple[str, list[str]]:
    words = (project.description or "").split()
    if len(words) < 2 or words[0] != "darkroom":
        return "", []
    round, _, roles = words[1].partition(":")
    return round, [role for role in roles.split(",") if role]


@dataclass(frozen=True)
class AccessRule:
    """Permissions of people without staff rights on one route; everything not named is refused."""

    route: str
    methods: Sequence[str]
    parameters: Mapping[str, Sequence[str] | None] = field(default_factory=dict)
    """Query parameters, with their only values; None: any."""
    body: Sequence[str] = ()
    """Keys of the JSON body of a write."""
    dropped: Sequence[str] = ()
    """Keys that the pages send, too, and Label Studio does not get: numbers of other objects."""
    ignores_body: bool = False
    """Whether Label Studio gets an empty body, whatever was sent."""
    own: Mapping[str, Owned] = field(default_factory=dict)
    """Arguments of the route (and query parameters) that number something, which must be the person's own."""
    answer: str = ""
    """The shape of its JSON; empty for a page or an image."""
    constant: Any = None
    """What is answered in Label Studio's place: a list of the Data Manager that the page needs, but not its content."""
    public: bool = False


@dataclass(frozen=True)
class AnswerShape:
    """The keys of an object that people see."""

    keys: Mapping[str, str | None]
    """With the shape of the value; None: as it is."""
    owner: str = ""
    """Of a list of these, a person sees the ones that they signed with this key."""
    constants: Mapping[str, Any] = field(default_factory=dict)
    """Keys that the pages need and whose value would tell of others' work."""


@dataclass(frozen=True)
class AccessTable:
    """Rules by route, and shapes by name."""

    rules: Mapping[str, Sequence[AccessRule]]
    shapes: Mapping[str, AnswerShape]

    @classmethod
    def load(cls, path: Path = FILE) -> AccessTable:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        rules: dict[str, list[AccessRule]] = {}
        for row in content["public"]:
            rules.setdefault(row["route"], []).append(AccessRule(**row, public=True))
        for row in content["people"]:
            rules.setdefault(row["route"], []).append(AccessRule(**row))
        return cls(rules, {name: AnswerShape(**row) for name, row in content["answers"].items()})

    def find(self, route: str, method: str) -> AccessRule | None:
        return next((rule for rule in self.rules.get(route, ()) if method in rule.methods), None)

    def shaped(self, value: Any, name: str, *, person_id: int, email: str) -> Any:
        """Cut an answer to its shape; of lists with an owner (number or e-mail), keep the person's entries."""
        shape = self.shapes[name]
        if isinstance(value, list):
            entries = [entry for entry in value if not shape.owner or _signer(entry, shape.owner) in (person_id, email)]
            return [self.shaped(entry, name, person_id=person_id, email=email) for entry in entries]
        if not isinstance(value, dict):
            return None
        shaped = {}
        for key, inner in value.items():
            if key in shape.constants:
                shaped[key] = shape.constants[key]
            elif key in shape.keys:
                nested = shape.keys[key]
                shaped[key] = inner if nested is None else self.shaped(inner, nested, person_id=person_id, email=email)
        return shaped


def refusal(rule: AccessRule, parameters: Mapping[str, Iterable[str]], body: Any) -> str:
    """Say in a sentence how a call breaks its rule; empty if it does not. ``body`` is parsed JSON, None without one."""
    for name, values in parameters.items():
        if name not in rule.parameters:
            return f"The parameter {name!r} is for the admin of this server only."
        allowed = rule.parameters[name]
        if allowed is not None and not set(values) <= set(allowed):
            return f"The parameter {name!r} with this value is for the admin of this server only."
    if body is None or rule.ignores_body:
        return ""
    if not isinstance(body, dict):
        return "The body of this request must be a JSON object."
    unknown = sorted(set(body) - {*rule.body, *rule.dropped})
    return f"Only the admin of this server may set {', '.join(map(repr, unknown))}." if unknown else ""


def wait_after(n_failures: int, elapsed: float) -> int:
    """The rest of the wait after so many wrong passwords, the last of them ``elapsed`` seconds ago."""
    if n_failures < FREE_FAILURES:
        return 0
    return max(0, round(min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(n_failures - FREE_FAILURES, 10)) - max(0.0, elapsed)))


def _signer(entry: Any, key: str) -> Any:
    signed = entry.get(key) if isinstance(entry, dict) else None
    return signed.get("id") if isinstance(signed, dict) else signed
