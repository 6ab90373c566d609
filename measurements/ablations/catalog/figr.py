"""FIGR: visual feedback (table 2), and what drawings earn (figure 3)."""

from measurements.ablations.catalog.starts import FEW, LOOKING, reinforced
from measurements.ablations.experiment import Arm, Comparison, Experiment, PaperRow
from measurements.ablations.models import Model

_FIGR = reinforced("figr", "figr", options={"by_suitability": False})
_BLIND = reinforced("figr_blind", "figr_without_visual_feedback")
_TRIAL = {"learning_rate": 0.0, "temperature": 0.01, "generations": 2, "batch_size": 46, "max_steps": 4}


def _trial(name: str, start: Model, method: str) -> Model:
    """Rollouts of ``start`` on held-out questions under the method's own terms, at a rate of 0."""
    return Model(name, "grpo", start, ("held_out",), method, _TRIAL)


TABLE_2 = Experiment(
    "figr_table_2",
    "Without visual feedback",
    PaperRow("FIGR", "table 2", "AIME 2025 79.3 with, 76.7 without visual feedback; BeyondAIME 54.0, 47.0"),
    (
        Arm("figr", "shown what its code draws", _trial("figr_trial", _FIGR, "figr"), None),
        Arm(
            "no_feedback",
            "shown only text, in training and here",
            _trial("figr_blind_trial", _BLIND, "figr_without_visual_feedback"),
            None,
        ),
    ),
    (Comparison("figr", "no_feedback", "rolled_right"),),
    ("rolled_right", "rolled_executable"),
    FEW,
    "An answer that is only in the crop, where the paper's are in its text as well. Drawing is taken as suitable.",
)


def _figure_3(name: str, says: str, model: Model) -> Arm:
    return Arm(name, says, model, {"protocol": "tool_call"}, ("held_out_looks",))


FIGURE_3 = Experiment(
    "figr_figure_3",
    "What an image of its own earns, and where",
    PaperRow(
        "FIGR",
        "figure 3 and table 2",
        "without the adaptive reward the use of code collapses; AIME 2025 79.3 with it, 70.0 without",
    ),
    (
        _figure_3("sft", "before RL", LOOKING),
        _figure_3("no_reward", "images earn nothing", reinforced("figr_0", "figr_without_visual_reward", LOOKING)),
        _figure_3("no_suitability", "1.0 wherever", reinforced("figr_anywhere", "figr_without_suitability", LOOKING)),
        _figure_3("figr", "1.0 where a look helps, else 0.2", reinforced("figr_adaptive", "figr", LOOKING)),
    ),
    (
        Comparison("figr", "no_reward", "last_tool_use"),
        Comparison("figr", "no_reward", "right"),
        Comparison("figr", "no_suitability", "tool_use_near", "less"),
    ),
    ("right", "tool_use_far", "tool_use_near"),
    FEW,
    "Crops of the question's image stand in for drawings. A look helps with signs seen from afar; the label is the "
    "world's. The paper has no ablation of suitability alone.",
)
EXPERIMENTS = (TABLE_2, FIGURE_3)
