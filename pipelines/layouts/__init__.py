"""Layouts: a shipped dataset, rendered for other trainers."""

from pipelines.layouts.base import Layout
from pipelines.layouts.faults import LayoutFault, Unfit, Unrenderable
from pipelines.layouts.llama_factory import LLAMA_FACTORY
from pipelines.layouts.ms_swift import MS_SWIFT, MS_SWIFT_INLINE
from pipelines.layouts.openrlhf import OPENRLHF_RL, OPENRLHF_SFT
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
"""Every layout by its name."""

__all__ = ["LAYOUTS", "Layout", "LayoutFault", "Unfit", "Unrenderable"]
