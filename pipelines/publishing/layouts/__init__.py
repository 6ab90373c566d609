"""Layouts: a shipped dataset, rendered for other trainers."""

from darkroom.pipelines.publishing.dataset_reader import Kind
from darkroom.pipelines.publishing.layouts.base import Layout as Layout
from darkroom.pipelines.publishing.layouts.export_source import LayoutError as LayoutError
from darkroom.pipelines.publishing.layouts.llama_factory import LLAMA_FACTORY
from darkroom.pipelines.publishing.layouts.ms_swift import MS_SWIFT, MS_SWIFT_GRPO, MS_SWIFT_INLINE
from darkroom.pipelines.publishing.layouts.openrlhf import OPENRLHF_PROMPTS, OPENRLHF_RL, OPENRLHF_SFT
from darkroom.pipelines.publishing.layouts.trl import TRL_GRPO, TRL_INLINE, TRL_TURNS
from darkroom.pipelines.publishing.layouts.turns import Unfit as Unfit, Unrenderable as Unrenderable
from darkroom.pipelines.publishing.layouts.verl import EASYR1, VERL_PROMPTS, VERL_RL, VERL_SFT

_FOR_SFT = (TRL_TURNS, TRL_INLINE, LLAMA_FACTORY, MS_SWIFT, MS_SWIFT_INLINE)
_OF_TRAJECTORIES = (*_FOR_SFT, VERL_SFT, VERL_RL, OPENRLHF_RL, OPENRLHF_SFT)
_OF_PROMPTS = (TRL_GRPO, VERL_PROMPTS, MS_SWIFT_GRPO, EASYR1, OPENRLHF_PROMPTS)
LAYOUTS: dict[str, Layout] = {layout.name: layout for layout in _OF_TRAJECTORIES}
"""Every layout of trajectories by its name."""
PROMPT_LAYOUTS: dict[str, Layout] = {layout.name: layout for layout in _OF_PROMPTS}
"""Every layout of the RL dataset by its name; a trainer's name is the same for both where it is the same work."""


def layout_of(name: str, kind: Kind) -> Layout:
    """The layout of that name for rows of that kind. Raises ``LayoutError``."""
    layouts = PROMPT_LAYOUTS if kind == "prompts" else LAYOUTS
    if name not in layouts:
        raise LayoutError(f"--layout is one of {', '.join(layouts)} for {kind}; found {name!r}")
    return layouts[name]
