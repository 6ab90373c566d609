"""The optional assets that a workspace has: those that its sources, settings or tables name.

What can only stand as never materialised is left out of the UI. A command has all, as it may be the first to make one.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from darkroom.annotation import AnnotationError
from darkroom.annotation.rounds.campaign import FILE, Campaign
from darkroom.annotation.rounds.image_pool import POOL
from darkroom.annotation.rounds.pre_annotations import PRE_ANNOTATIONS
from darkroom.assets.graph.flywheel import GROUP as FLYWHEEL
from darkroom.assets.graph.flywheel import PREFIX
from darkroom.assets.graph.resources import PolicyResource
from darkroom.pipelines.generation.released import RELEASED
from darkroom.pipelines.publishing.judge_stats import REVIEWS
from darkroom.pipelines.sources.catalog import Catalog
from darkroom.pipelines.storage.workspace import Workspace


@dataclass(frozen=True)
class Options:
    """Which optional assets there are; all by default."""

    releases: bool = True
    """The families of released trajectories: a source of that kind, or their tables."""
    flywheel: bool = True
    """Its settings, a student that is a checkpoint, or the checkpoint of a turn."""
    annotation: bool = True
    """A campaign, or the pool of a recorded one."""
    pre_annotations: bool = True
    """A campaign that asks for them, or their table."""
    expert_reviews: bool = True
    """A campaign, or their tables."""
    street_signs: bool = True
    """Their datasets, which `darkroom demo` makes."""

    @classmethod
    def of(cls, workspace: Workspace, environment: Mapping[str, str] = os.environ) -> Self:
        """Those of a workspace. Raises ``SourceError``, ``PolicyUnavailable``, ``StorageError``."""
        made = set(workspace.tables.families())
        has_campaign = (workspace.annotation / FILE).exists()
        sources = Catalog(workspace.sources).configs().values()
        return cls(
            releases=any(source.is_release for source in sources) or any(recipe.family in made for recipe in RELEASED),
            flywheel=any(name.startswith(PREFIX) for name in environment)
            or PolicyResource.from_environment("STUDENT", environment).kind == "local"
            or workspace.checkpoint(FLYWHEEL).exists(),
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
