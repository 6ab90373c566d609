"""PyVision-RL: films (figure 4), sorting by standard deviation (figure 6), tool reward and budget (figure 7)."""

from measurements.ablations.catalog.starts import COUNTING, FEW, reinforced, seeing
from measurements.ablations.experiment import Arm, Comparison, Experiment, PaperRow
from measurements.ablations.models import Model

_WORLD = (
    "About half of the questions need one look, the others two. The model starts from SFT on rows of which a third "
    "look once more than is needed."
)


SMALLEST = 28 * 28
"""Pixels of an image at least, as in SFT. The method's own term would enlarge a piece of a wall fourfold, and the model
would not know it again."""


def _trained(name: str, method: str, *, max_rounds: int = 4, oversample: float = 1.0) -> Model:
    terms = {"protocol": "thyme", "max_rounds": max_rounds, "oversample": oversample, "min_pixels": SMALLEST}
    return reinforced(name, method, COUNTING, **terms)


def _counting(name: str, says: str, model: Model) -> Arm:
    return Arm(name, says, model, {"max_rounds": 4}, ("held_out_needed_looks",))


def _watching(n: int) -> Arm:
    return Arm(
        f"frames_{n}",
        f"{n} frames, uniformly sampled, in the context",
        Model("watching", "sft", seeing("untrained_frames", "frames"), ("frames",)),
        {"protocol": "pyvision", "mode": "forbidden", "frames": n},
        ("held_out_films",),
    )


FIGURE_4 = Experiment(
    "pyvision_figure_4",
    "Accuracy against visual tokens: frames in the context, or on demand",
    PaperRow(
        "PyVision-RL",
        "figure 4",
        "VSI-Bench 44.0 with about 5,000 visual tokens on demand; 38.0 with about 45,000 for Qwen2.5-VL-7B, which is "
        "shown one frame a second",
    ),
    (
        *(_watching(n) for n in (2, 8, 32)),
        Arm(
            "on_demand",
            "frames that code shows",
            Model("fetching", "sft", seeing("untrained_films", "films"), ("films",)),
            {"protocol": "pyvision", "max_rounds": 3},
            ("held_out_films",),
        ),
    ),
    (
        Comparison("on_demand", "frames_32", "visual_tokens", "less"),
        Comparison("on_demand", "frames_32", "right"),
        Comparison("on_demand", "frames_8", "right"),
        Comparison("frames_32", "frames_8", "right"),
    ),
    ("right", "visual_tokens", "executed"),
    FEW,
    "SFT alone. A sign shows up in 9 of 260 frames, and the question names one of them: what is learned is to fetch a "
    "frame, not to find one. The models in whose context frames are were trained on 8 and on 32 of them.",
)
FIGURE_6 = Experiment(
    "pyvision_figure_6",
    "Sorting groups by their standard deviation against right rollouts that are trained away from",
    PaperRow("PyVision-RL", "figure 6", "sorting lowers the share of right rollouts with negative advantage; no table"),
    (
        _counting(
            "unsorted",
            "of twice as many groups the first with spread",
            _trained("pyvision_unsorted", "pyvision_without_sorting", oversample=2.0),
        ),
        _counting("sorted", "those with most spread", _trained("pyvision_sorted", "pyvision", oversample=2.0)),
    ),
    (Comparison("sorted", "unsorted", "rolled_positive_negative", "less"), Comparison("sorted", "unsorted", "right")),
    ("rolled_positive_negative", "right", "calls"),
    FEW,
    _WORLD,
)
FIGURE_7 = Experiment(
    "pyvision_figure_7",
    "The accumulative tool reward against interaction collapse",
    PaperRow(
        "PyVision-RL",
        "figure 7",
        "without the tool reward the calls per rollout fall and stay low; with it they rise, more with a budget of 4",
    ),
    (
        _counting("sft", "before RL", COUNTING),
        _counting("no_reward", "accuracy alone, 4 rounds", _trained("pyvision_0", "pyvision_without_tool_reward")),
        _counting("budget_2", "and 0.1 per call, 2 rounds", _trained("pyvision_2", "pyvision", max_rounds=2)),
        _counting("budget_4", "and 0.1 per call, 4 rounds", _trained("pyvision", "pyvision")),
    ),
    (
        Comparison("budget_4", "no_reward", "last_calls"),
        Comparison("no_reward", "sft", "calls", "less"),
        Comparison("budget_4", "budget_2", "last_calls"),
        Comparison("budget_4", "no_reward", "right"),
    ),
    ("calls_one_look", "calls_two_looks", "right_one_look", "right_two_looks"),
    FEW,
    f"No oversampling. {_WORLD}",
)
EXPERIMENTS = (FIGURE_4, FIGURE_6, FIGURE_7)
