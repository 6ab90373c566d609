"""The cards of shipped datasets: rendered from facts, never by hand, with the front matter of the Hugging Face hub.

The manifest has the facts, as JSON: whoever has the files counts those of the rows again and renders the card anew."""

import inspect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import partial
from typing import Any

from darkroom.pipelines.publishing.dataset_reader import Kind
from darkroom.pipelines.publishing.rendering import render, text_bars
from darkroom.pipelines.records.annotation import asked, measured_on
from darkroom.pipelines.records.samples import LICENCE_REMEDY
from darkroom.pipelines.storage.stage_runs import code_digest
from darkroom.pipelines.verification.checks.check import CheckFunction, MeasuredCheck

_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
_HUB_IDS = {"apache-2.0", "bsd-3-clause", "cc-by-2.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc0-1.0", "mit"}
"""Licences that the hub knows by their SPDX identifier in lower case; others stand in ``license_name``."""
_TEMPLATES: Mapping[Kind, str] = {"trajectories": "cards/sft_card.md.jinja", "prompts": "cards/rl_card.md.jinja"}
_LINE = 80
_SEVERAL = "several licences"


def in_words(check: CheckFunction) -> str:
    """Describe a check, with the values of constants instead of their names: ``At most 0.25 of the image``."""
    function = check.judge if isinstance(check, MeasuredCheck) else check.ask
    paragraph = (inspect.getdoc(function) or "").partition("\n\n")[0].replace("\n", " ")
    text = paragraph if paragraph.startswith(check.description) else check.description
    constants = {name: value for name, value in vars(inspect.getmodule(function)).items() if name.isupper()}
    for name, value in constants.items():
        text = text.replace(f"``{name}``", f"{value:,}" if isinstance(value, int | float) else f"``{name}``")
    return text


def plain(value: Any) -> Any:
    """A fact as JSON holds it; of a record its fields and properties."""
    if is_dataclass(value) or hasattr(value, "_fields"):
        parts = {name: getattr(value, name) for name in dir(value) if not name.startswith("_")}
        return plain({name: part for name, part in parts.items() if not callable(part)})
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(str, value))
    return [plain(part) for part in value] if isinstance(value, list | tuple) else value


def labelled_by(calibration: Mapping[str, Any]) -> str:
    """Who labelled the rows that a judge was measured on."""
    name = calibration["labelled"]
    people = "the makers of Darkroom" if name.startswith("bundled") else ", ".join(calibration["reviewers"])
    return f"labelled by {people or 'people who are not named'}, {name}"


def interval(estimate: Mapping[str, float | None]) -> str:
    """``0.950 (0.890 to 1.000)``; a dash for what is not defined."""
    value, low, high = ("–" if estimate[part] is None else f"{estimate[part]:.3f}" for part in ("value", "low", "high"))
    return f"{value} ({low} to {high})"


_WORDS: Mapping[str, Any] = {
    **{"asked": asked, "labelled_by": labelled_by, "interval": interval, "measured_on": measured_on},
    "bars": lambda counts: text_bars({f"{n:>3} ": n_rows for n, n_rows in counts.items()}),
    "licence_remedy": LICENCE_REMEDY,
    "in_lines": partial(json.dumps, indent=2, ensure_ascii=False),
}


def card_code() -> str:
    """Digest of the code that renders cards: by another version, the same facts may read otherwise."""
    return code_digest(__name__, *(f"darkroom.pipelines.publishing.{name}" for name in ("features", "rendering")))


def render_card(kind: Kind, card: Mapping[str, Any]) -> str:
    """The card's text, of facts that are JSON."""
    return render(_TEMPLATES[kind], front_matter=front_matter(kind, **card), **_WORDS, **card) + "\n"


def front_matter(
    kind: Kind, title: str, tags: Sequence[str], languages: Mapping[str, str], facts: Mapping[str, Any], **_: Any
) -> str:
    """YAML at the top of a card, without its ``---`` lines. ``languages``: ISO 639, by source. No ``configs``: with
    them, ``load_dataset(folder)`` answers from its cache after the folder was made anew."""
    from datasets import DatasetInfo  # takes a second
    from datasets.info import DatasetInfosDict
    from huggingface_hub import DatasetCardData

    from darkroom.pipelines.publishing.features import features_of

    data = DatasetCardData(
        pretty_name=title,
        language=sorted({languages[source] for source in facts["columns"]["source"] if source in languages}) or None,
        task_categories=["visual-question-answering"],
        size_categories=[next((name for bound, name in _SIZES if facts["n_rows"] < bound), "10M<n<100M")],
        tags=["darkroom", "thinking-with-images", *tags],
        **_license(licence_parts(facts["columns"]["licence"])),
    )
    DatasetInfosDict({"default": DatasetInfo(features=features_of(kind))}).to_dataset_card_data(data)
    return data.to_yaml().strip()


def licence_parts(licenses: Iterable[str]) -> list[str]:
    """The single licences of compound ones (``CC0-1.0 AND MIT``), each once; ``not stated`` for an empty one."""
    return sorted({part for text in licenses for part in (text or "not stated").split(" AND ")})


def _license(parts: Sequence[str]) -> dict[str, Any]:
    if len(parts) == 1 and parts[0].lower() in _HUB_IDS:
        return {"license": parts[0].lower()}
    if not set(parts) - {"not stated", "unknown"}:
        return {"license": "unknown"}
    joined = " AND ".join(parts)
    name = joined if len(joined) <= _LINE - len("license_name: ") else _SEVERAL
    return {"license": "other", "license_name": name, "license_link": "README.md"}
