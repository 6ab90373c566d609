"""The YAML at the top of a card, as the Hugging Face hub reads it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from datasets import DatasetInfo, Features
from datasets.info import DatasetInfosDict
from huggingface_hub import DatasetCardData

from darkroom.pipelines.publishing.cards.row_facts import SampleFacts

_SIZES = ((10**3, "n<1K"), (10**4, "1K<n<10K"), (10**5, "10K<n<100K"), (10**6, "100K<n<1M"), (10**7, "1M<n<10M"))
_HUB_IDS = {"apache-2.0", "bsd-3-clause", "cc-by-2.0", "cc-by-4.0", "cc-by-sa-4.0", "cc-by-nc-4.0", "cc0-1.0", "mit"}
"""Licences that the hub knows by their SPDX identifier in lower case; others stand in ``license_name``."""
_LINE = 80
_SEVERAL = "several licences"


def front_matter(
    title: str,
    facts: SampleFacts,
    features: Features,
    *,
    tags: Sequence[str],
    languages: Mapping[str, str],
) -> str:
    """YAML without its ``---`` lines. ``languages``: ISO 639, by source, of those that state it.

    No ``configs``: with them, ``load_dataset(folder)`` answers from its cache after the folder was made anew.
    """
    spoken = sorted({languages[source] for source in facts.sources if source in languages})
    data = DatasetCardData(
        pretty_name=title,
        language=spoken or None,
        task_categories=["visual-question-answering"],
        size_categories=[next((name for bound, name in _SIZES if facts.n_rows < bound), "10M<n<100M")],
        tags=["darkroom", "thinking-with-images", *tags],
        **_license(licence_parts(facts.licenses)),
    )
    DatasetInfosDict({"default": DatasetInfo(features=features)}).to_dataset_card_data(data)
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
