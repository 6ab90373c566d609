"""The rules of a campaign (``<home>/annotation/campaign.yaml``, as in ``example_campaign.yaml`` beside this file).

*Terms* are what a task's submissions are judged by, frozen in the journal when the task is handed out: a later change
of rules or form applies to later tasks. People's roles are frozen with each submission (``Journal.set_people``).
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import pydantic
import yaml

from darkroom.annotation import AnnotationError
from darkroom.annotation.label_studio.forms import CATEGORIES, GUIDES, REASONS, form, names
from darkroom.annotation.rounds.journal_file import TaskRequest
from darkroom.pipelines.records.digest import digest
from darkroom.pipelines.storage.stage_runs import code_digest
from darkroom.pipelines.storage.user_files import config_errors

FILE = "campaign.yaml"
CATEGORY_NAMES = names(CATEGORIES)
Rule = Literal["majority", "unanimity"]
Unit = Literal["annotate", "cross_check", "accept", "rework", "record", "hour"]
PreAnnotationUse = Literal["", "all", "shown", "withheld"]
"""Of an image's first task: none was written, all are shown, or the seed chose to show it or not."""
EXAMPLE, TRIAL = (Path(__file__).with_name(name) for name in ("example_campaign.yaml", "trial_campaign.yaml"))


class ImageFolder(pydantic.BaseModel, extra="forbid", frozen=True):
    """Images from one place, under one licence."""

    path: str
    """A file, a folder (recursive) or a pattern, relative to the campaign's file."""
    source: str
    license: str


class Campaign(pydantic.BaseModel, extra="forbid", frozen=True):
    """The rules; defaults are the paper's, where it has one."""

    name: Annotated[str, pydantic.Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.-]{0,30}$")] = "annotation"
    """Projects on the server are named after it."""
    images: tuple[ImageFolder, ...] = ()
    min_side: Annotated[int, pydantic.Field(ge=0)] = 2048
    """The longer side of an image has more pixels than this (Thyme 4.1)."""
    max_share: Annotated[float, pydantic.Field(gt=0, le=1)] = 0.05
    """Largest share of the image's area that a box may cover (Thyme appendix D)."""
    n_images: Annotated[int | None, pydantic.Field(ge=1)] = None
    """Size of a seeded sample; None: every suitable image."""
    max_rework: Annotated[int, pydantic.Field(ge=0)] = 2
    """How often a rejected record is sent back."""
    experts_per_record: Annotated[int, pydantic.Field(ge=1, le=15)] = 1
    """Experts who judge a record, each on their own (Thyme 4.1: 3)."""
    expert_rule: Rule = "majority"
    """A record is accepted if more than half of them, or all, name the same version of it."""
    checked_twice: Annotated[float, pydantic.Field(ge=0, le=1)] = 0
    """Share of records that two people check, each on their own; unless both name the same version, it is sent back."""
    annotators_check: bool = True
    """Annotators check each other's records; False: only accounts with the role checker do."""
    gold_share: Annotated[float, pydantic.Field(ge=0, le=1)] = 0.05
    """Share of cross-checks that are repeated with a planted error."""
    pre_annotate: Literal["no", "pixels", "thousandths"] = "no"
    """Let a policy write records for people to correct, with boxes in pixels of the image that it receives (Qwen2.5-VL)
    or in thousandths of its sides (Qwen3-VL)."""
    pre_annotated_share: Annotated[float, pydantic.Field(ge=0, le=1)] = 1
    """Share of images, chosen by the seed, that people get with it; below 1 the report compares them with the rest."""
    rates: Mapping[Unit, Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]] = {}
    """Pay of a valid submission by round, of an accepted record (its last author's), and of an active hour."""
    currency: Annotated[str, pydantic.Field(pattern=r"^[A-Z]{3}$")] = "EUR"
    language: str = "en"
    """The guide's for people in whose language there is none; one of ``annotation/label_studio/GUIDE*.md``."""
    practice: str = ""
    """Images with known right answers on which annotators and checkers practise before their first task: a file of JSON
    lines, relative to the campaign's file (``rounds/practice.py``), or ``example``; empty: no practice."""
    seed: int = 0
    """Which records people check twice, with a planted error, or write without a policy's. `init` draws one; with 0, as
    in campaigns of earlier versions, the journal's secret is used for it."""

    @pydantic.field_validator("language")
    @classmethod
    def _is_known(cls, language: str) -> str:
        if language not in GUIDES:
            raise ValueError(f"there is no guide in {language!r}; choose from {', '.join(GUIDES)}")
        return language

    def seeded(self, secret: int) -> Campaign:
        """The campaign with ``secret`` in place of a missing seed: with 0 people could compute the choice."""
        return self if self.seed else self.model_copy(update={"seed": secret})

    def pre_annotation(self, item_id: str) -> PreAnnotationUse:
        """Choose whether people get an image with the policy's record, if it wrote one: the same at every sync."""
        is_shown = is_selected(self.pre_annotated_share, "pre-annotated", item_id, seed=self.seed)
        return "all" if self.pre_annotated_share == 1 else "shown" if is_shown else "withheld"

    @staticmethod
    def write(template: Path, path: Path) -> None:
        secret = "which records are checked twice or with a planted error; keep it secret"
        path.write_text(f"{template.read_text()}seed: {secrets.randbelow(2**53)}   # {secret}\n")

    @classmethod
    def load(cls, folder: Path) -> Campaign:
        """The campaign of a workspace; defaults without a file. Raises ``AnnotationError`` with the line or field."""
        path = folder / FILE
        if not path.exists():
            return cls()
        with config_errors(path, AnnotationError, remedy=". See `darkroom annotate init` for an example"):
            return cls.model_validate(yaml.safe_load(path.read_text()) or {})


_ROOMS = ("annotation.label_studio", "annotation.rounds", "pipelines.records", "pipelines.storage")
ANNOTATION_CODE = ("darkroom.annotation._plugin.darkroom_studio.content", *(f"darkroom.{room}" for room in _ROOMS))
"""The code that decides the tasks, and how submissions become rows."""


def annotation_digest(*names: str) -> str:
    return code_digest(*ANNOTATION_CODE, *names)


RULES = ("max_share", "max_rework", "experts_per_record", "expert_rule", "checked_twice", "seed")
"""The fields that are rules of the campaign."""


class Terms(NamedTuple):
    """The rules and the form's version and options; defaults are today's form."""

    max_share: float
    max_rework: int
    form: str = ""
    """Digest of the labelling configuration; empty for a task of an older version."""
    categories: tuple[str, ...] = CATEGORY_NAMES
    reasons: tuple[str, ...] = ()
    """Empty: not checked, as the gate of older versions did."""
    experts_per_record: int = 1
    """For acceptances; other rounds have the default."""
    expert_rule: Rule = "majority"
    checked_twice: float = 0
    """For cross-checks; other rounds have the default."""
    seed: int = 0
    """Selects these records; 0 without a selection."""
    pre_annotation: PreAnnotationUse = ""

    @property
    def digest(self) -> str:
        return digest(self._asdict())[:20]

    @classmethod
    def from_json(cls, text: str) -> Terms:
        fields: dict[str, Any] = json.loads(text)
        fields |= {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        return cls(**fields)

    def n_verdicts(self, round: str, item_id: str) -> int:
        """The number of people who judge the record in this round, each on their own."""
        if round == "accept":
            return self.experts_per_record
        if round == "cross_check" and is_selected(self.checked_twice, "checked twice", item_id, seed=self.seed):
            return 2
        return 1

    def rule(self, round: str) -> Rule:
        """Two checkers of a record have to agree."""
        return self.expert_rule if round == "accept" else "unanimity"

    def gate(self, round: str, size: tuple[int, int]) -> dict[str, Any]:
        """The rules of a task about an image of this size, as the server reads them. An acceptance must repeat the
        boxes; under the terms of older versions those of the record stay without any."""
        options = {"categories": list(self.categories), "reasons": list(self.reasons)}
        frame = {"width": size[0], "height": size[1], "max_share": self.max_share}
        return {"kind": round, **frame, **options, "accept_needs_box": bool(self.form)}

    def asked(self, request: TaskRequest) -> TaskRequest:
        """A round's first request, for as many people as these terms ask; others unchanged."""
        if request.serial or request.planted_error:
            return request
        n_wanted = self.n_verdicts(request.round, request.item_id)
        return request._replace(n_wanted=n_wanted, overlap=request.overlap - request.n_wanted + n_wanted)

    def changes(self, before: Terms) -> list[str]:
        """The differences from earlier terms, for people."""
        rules = [name for name in RULES if getattr(self, name) != getattr(before, name)]
        changed = [f"{name} {_shown(getattr(before, name))} -> {_shown(getattr(self, name))}" for name in rules]
        is_new_form = any(getattr(self, name) != getattr(before, name) for name in ("form", "categories", "reasons"))
        return changed + (["a new version of the form"] if is_new_form else [])


def is_selected(share: float, *key: str, seed: int = 0) -> bool:
    """A fixed share of all keys, which a larger share contains; ``seed`` keeps it from people, who see the rest."""
    return int(digest([*key, *([seed] if seed else [])])[:13], 16) < share * 16**13


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def terms_of(campaign: Campaign, round: str) -> Terms:
    terms = Terms(campaign.max_share, campaign.max_rework, digest(form(round))[:20], names(CATEGORIES), names(REASONS))
    if round == "accept":
        return terms._replace(experts_per_record=campaign.experts_per_record, expert_rule=campaign.expert_rule)
    if round == "cross_check" and campaign.checked_twice:
        return terms._replace(checked_twice=campaign.checked_twice, seed=campaign.seed)
    return terms


FEWEST = 3
"""People who write or check: a rejected record goes to one who has not judged it."""


def shortages(campaign: Campaign, accounts: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The roles with too few active accounts, each with a sentence: authors, checkers, one more for planted errors."""
    n_of = Counter(str(account["role"]) for account in accounts if account["is_active"])
    n_checking = (2 if campaign.checked_twice else 1) + (1 if campaign.gold_share else 0)
    needed = {"annotator": 1, "checker": n_checking, "expert": campaign.experts_per_record}
    if campaign.annotators_check:
        n_both = max(FEWEST, 1 + n_checking)
        needed |= {"annotator": max(1, n_both - n_of["checker"]), "checker": 0}
    return {
        role: f"{n_of[role]} {role}{'s' * (n_of[role] != 1)}; this campaign needs at least {n} "
        f"(`darkroom annotate users add EMAIL --role {role}`)"
        for role, n in needed.items()
        if n_of[role] < n
    }


def require_experts(campaign: Campaign, accounts: Iterable[Mapping[str, Any]]) -> None:
    """Raises ``AnnotationError`` where several experts judge a record and there are fewer, before any task is out."""
    short = shortages(campaign, accounts).get("expert")
    if short and campaign.experts_per_record > 1:
        raise AnnotationError(f"too few experts: {short}")
