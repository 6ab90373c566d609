"""Pivots: GRPO on single decisions, rewarded by what their code shows, and the first crop of a rollout."""

from measurements.ablations.catalog.starts import FEW
from measurements.ablations.experiment import Arm, Comparison, Experiment, PaperRow
from measurements.ablations.models import Model

_SFT = Model(
    "few_words", "sft", Model("few_words_random", "random", rows=("few_words",)), ("few_words",), "", {"max_steps": 300}
)
"""As the demo trains its model."""
FIRST_CROPS = Experiment(
    "pivots_first_crops",
    "Does GRPO on pivots raise first-crop hits?",
    PaperRow("Pivots", "after PivotRL's idea", "no table is repeated"),
    (
        Arm("sft", "before it", _SFT),
        Arm("pivots", "GRPO on single decisions", Model("steps", "steps", _SFT, ("pivots",))),
    ),
    (Comparison("pivots", "sft", "faithful_first"), Comparison("pivots", "sft", "right")),
    ("faithful_first", "right", "executed", "unanswered"),
    FEW,
    "TRL's own trainer on the export `trl_steps` with `step_rewards`: of a crop, whether it shows the whole sign in at "
    "most a quarter of the image, and of an answer, whether it is right. The decisions are about 16 walls that SFT had "
    "not seen. A hit is a first crop that shows half of the region or more; rollouts are played to their end.",
)
EXPERIMENTS = (FIRST_CROPS,)
