"""Layouts: a shipped dataset, rendered for other trainers."""

from pipelines.layouts.base import Kind, Layout
from pipelines.layouts.faults import LayoutFault, Unfit, Unrenderable
from pipelines.layouts.llama_factory import LLAMA_FACTORY
from pipelines.layouts.ms_swift import MS_SWIFT, MS_SWIFT_INLINE
from pipelines.layouts.openrlhf import OPENRLHF_RL, OPENRLHF_SFT
from pipelines.layouts.prompts.easyr1 import EASYR1
from pipelines.layouts.prompts.ms_swift import MS_SWIFT_GRPO
from pipelines.layouts.prompts.openrlhf import OPENRLHF_RL as OPENRLHF_RL_PROMPTS
from pipelines.layouts.prompts.trl import TRL_GRPO
from pipelines.layouts.prompts.verl import VERL_RL as VERL_RL_PROMPTS
from pipelines.layouts.trl import TRL_INLINE, TRL_TURNS
from pipelines.layouts.verl_rl import VERL_RL
from pipelines.layouts.verl_sft import VERL_SFT

LAYOUTS: dict[str, Layout] = {
    layout.name: layout
    for layout in (
        TRL_TURNS,
        TRL_INLINE,
        LLAMA_FACTORY,
        MS_SWIFT,
        MS_SWIFT_INLINE,
        VERL_SFT,
        VERL_RL,
        OPENRLHF_RL,
        OPENRLHF_SFT,
    )
}
"""Every layout of trajectories by its name."""
PROMPT_LAYOUTS: dict[str, Layout] = {
    layout.name: layout for layout in (TRL_GRPO, VERL_RL_PROMPTS, MS_SWIFT_GRPO, EASYR1, OPENRLHF_RL_PROMPTS)
}
"""Every layout of the RL dataset by its name; a trainer's name is the same for both where it is the same work."""


def layout_of(name: str, kind: Kind) -> Layout:
    """The layout of that name for rows of that kind. Raises ``LayoutFault``."""
    known = PROMPT_LAYOUTS if kind == "prompts" else LAYOUTS
    if name not in known:
        raise LayoutFault(f"--layout is one of {', '.join(known)} for {kind}; found {name!r}")
    return known[name]


__all__ = ["LAYOUTS", "PROMPT_LAYOUTS", "Layout", "LayoutFault", "Unfit", "Unrenderable", "layout_of"]
