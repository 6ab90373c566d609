"""PyVision-RL: the tool reward (figure 7)."""

from benchmarks.ablations.catalog.starts import FEW, SFT, reinforced
from benchmarks.ablations.experiment import Arm, Comparison, Experiment, PaperRow

_FOUR = {"max_rounds": 4}
FIGURE_7 = Experiment(
    "pyvision_figure_7",
    "The accumulative tool reward against interaction collapse",
    PaperRow(
        "PyVision-RL",
        "figure 7",
        "without the tool reward the calls per rollout fall and stay low; with it they rise, more with a budget of 4",
    ),
    (
        Arm("sft", "before RL", SFT, _FOUR),
        Arm(
            "no_reward",
            "accuracy alone",
            reinforced("pyvision_0", "pyvision_without_tool_reward", max_rounds=4),
            _FOUR,
        ),
        Arm("reward", "and 0.1 per call", reinforced("pyvision", "pyvision", max_rounds=4), _FOUR),
    ),
    (
        Comparison("reward", "no_reward", "calls"),
        Comparison("no_reward", "sft", "calls", "less"),
        Comparison("reward", "no_reward", "right"),
    ),
    ("calls", "tool_use", "right"),
    FEW,
    "No oversampling. Every question of the world needs one look, and none needs two.",
)
EXPERIMENTS = (FIGURE_7,)
