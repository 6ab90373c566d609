"""The optional assets that a workspace has: those that its sources, settings or tables name.

What can only stand as never materialised is left out of the UI. A command has all, as it may be the first to make one.
"""

from dataclasses import dataclass
from typing import Self

from darkroom.annotation import AnnotationError
from darkroom.annotation.rounds.campaign import FILE, Campaign
from darkroom.annotation.rounds.image_pool import POOL
from darkroom.annotation.rounds.pre_annotations import PRE_ANNOTATIONS
from darkroom.pipelines.generation.released import RELEASED
from darkroom.pipelines.publishing.judge_stats import REVIEWS
from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.storage.workspace import Workspace


@dataclass(frozen=True)
class Options:
    """Which optional assets there are; all by default."""

    releases: bool = True
    """The families of released trajectories: a source of that kind, or their tables."""
    annotation: bool = True
    """A campaign, or the pool of a recorded one."""
    pre_annotations: bool = True
    """A campaign that asks for them, or their table."""
    expert_reviews: bool = True
    """A campaign, or their tables."""
    street_signs: bool = True
    """Their datasets, which `darkroom demo` makes."""

    @classmethod
    def of(cls, workspace: Workspace) -> Self:
        """Those of a workspace. Raises ``SourceError``, ``StorageError``."""
        made = set(workspace.tables.families())
        has_campaign = (workspace.annotation / FILE).exists()
        sources = Catalog(workspace.sources).configs().values()
        return cls(
            releases=any(source.is_release for source in sources) or any(recipe.family in made for recipe in RELEASED),
            annotation=has_campaign or POOL.asset[0] in made,
            pre_annotations=PRE_ANNOTATIONS.asset[0] in made or (has_campaign and _pre_annotates(workspace)),
            expert_reviews=has_campaign or REVIEWS[0] in made,
            street_signs="street_signs" in made,
        )


ALL = Options()


def _pre_annotates(workspace: Workspace) -> bool:
    try:
        return Campaign.load(workspace.annotation).pre_annotate != "no"
    except AnnotationError:
        return True  # the graph loads; whoever materialises them reads what is wrong with the file
