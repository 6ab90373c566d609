"""Look Less, Reason More: tools forced, forbidden and free (table 3), rewards of forced rollouts (tables 2 and 4)."""

from measurements.ablations.catalog.starts import FEW, LOOKING, reinforced
from measurements.ablations.experiment import Arm, Comparison, Experiment, PaperRow
from measurements.ablations.models import Model

_PAPER = "Look Less, Reason More"
_QUESTIONS = ("held_out_looks",)
_WORLD = (
    "Half of the questions are about signs seen from afar, where a crop alone shows the colour, half about signs seen "
    "from near. SFT has rows of all three modes: calls where they are forced or free, none where forbidden or free."
)
_EIGHT = {"generations": 8}
"""A group is divided into quarters."""
_ADAPTIVE = reinforced("adaptive", "adaptive", LOOKING, **_EIGHT)


def _arm(name: str, says: str, model: Model, mode: str = "free") -> Arm:
    return Arm(name, says, model, {"protocol": "tool_call", "mode": mode}, _QUESTIONS)


TABLE_3 = Experiment(
    "look_less_table_3",
    "Tools forbidden, forced, or free",
    PaperRow(
        _PAPER,
        "table 3",
        "average of five benchmarks 72.4 without tools, 72.5 with tools always, 74.9 free; InfoVQA 82.1, 81.7, 84.4",
    ),
    (
        _arm("forbidden", "asked not to use a tool", _ADAPTIVE, "forbidden"),
        _arm("forced", "asked to use one", _ADAPTIVE, "forced"),
        _arm("free", "as it likes", _ADAPTIVE),
    ),
    (
        Comparison("free", "forbidden", "right"),
        Comparison("free", "forced", "right"),
        Comparison("forced", "forbidden", "tool_use"),
        Comparison("free", "forced", "tool_use", "less"),
    ),
    ("right", "right_far", "right_near", "tool_use"),
    FEW,
    f"One model under three prompts. {_WORLD}",
)
TABLE_4 = Experiment(
    "look_less_table_4",
    "Whether forced and forbidden rollouts are trained",
    PaperRow(
        _PAPER,
        "tables 2 and 4",
        "average of five benchmarks (share of tool use) 66.9 (40.6) SFT, 73.7 (37.2) without their rewards, 74.9 "
        "(36.0) with them",
    ),
    (
        _arm("sft", "before RL", LOOKING),
        _arm(
            "without",
            "they measure necessity alone",
            reinforced("adaptive_0", "adaptive_without_necessity_rewards", LOOKING, **_EIGHT),
        ),
        _arm("with", "they are trained, too", _ADAPTIVE),
    ),
    (
        Comparison("with", "without", "right"),
        Comparison("with", "sft", "right"),
        Comparison("with", "sft", "tool_use_near", "less"),
    ),
    ("right", "tool_use_far", "tool_use_near"),
    FEW,
    _WORLD,
)
EXPERIMENTS = (TABLE_3, TABLE_4)
