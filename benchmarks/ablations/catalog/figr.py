"""FIGR: visual feedback (table 2)."""

from benchmarks.ablations.catalog.starts import FEW, reinforced
from benchmarks.ablations.experiment import Arm, Comparison, Experiment, PaperRow
from benchmarks.ablations.models import Model

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


EXPERIMENTS = (TABLE_2,)
