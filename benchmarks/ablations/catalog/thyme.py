"""Thyme: SFT's strategies (table 6), RL without SFT (table 8), GRPO-ATS."""

from benchmarks.ablations.catalog.starts import FEW, FRESH, GRPO, SEEING, SFT
from benchmarks.ablations.experiment import Arm, Comparison, Experiment, PaperRow
from benchmarks.ablations.models import Model

LEARNING_PROOF = Experiment(
    "learning_proof",
    "Does GRPO after SFT give more right answers?",
    PaperRow("Thyme", "tables 4 and 6", "no table has SFT alone and SFT with GRPO on the same benchmarks"),
    (
        Arm("untrained", "knows the colours, has never seen code", SEEING),
        Arm("sft", "SFT", SFT),
        Arm("grpo", "SFT, then GRPO (Thyme's reward, sampled plainly)", GRPO, {"controls": 48}),
    ),
    (
        Comparison("sft", "untrained", "right"),
        Comparison("grpo", "sft", "right"),
        Comparison("grpo", "sft", "executed"),
        Comparison("grpo", "untrained", "right"),
    ),
    ("right", "executed", "unanswered"),
    FRESH,
)


def _sft(name: str, **settings: object) -> Model:
    """SFT goes on with rows with one look and rows with two."""
    return Model(name, "sft", SFT, ("train", "second_looks"), settings={"max_steps": 150, **settings})


_SECOND = {"max_rounds": 3}
TABLE_6 = Experiment(
    "thyme_table_6",
    "Which tokens and rounds SFT trains",
    PaperRow(
        "Thyme",
        "table 6",
        "V* 72.7 naive, 78.5 masked, 78.5 last round only, 77.5 without comments; MME-RealWorld-Lite "
        "(perception) 44.0, 50.1, 50.5, 49.1",
    ),
    (
        Arm(
            "naive",
            "all tokens, observations too",
            _sft("naive", train_observations=True, loss_policy="all_rounds"),
            _SECOND,
        ),
        Arm("masked", "observations masked, all rounds", _sft("all_rounds", loss_policy="all_rounds"), _SECOND),
        Arm("last_round", "and only the last round", _sft("last_round", loss_policy="last_round"), _SECOND),
        Arm(
            "no_comments",
            "and code without comments",
            _sft("no_comments", loss_policy="last_round", without_comments=True),
            _SECOND,
        ),
    ),
    (
        Comparison("masked", "naive", "right"),
        Comparison("last_round", "masked", "right"),
        Comparison("last_round", "masked", "calls", "less"),
        Comparison("last_round", "no_comments", "right"),
    ),
    ("right", "executed", "calls"),
    FEW,
    "All arms go on from one SFT model that knows rows with one look; half of the rows here look at a wrong place "
    "first and correct themselves. Annealing is not implemented: the world has no maths.",
)
TABLE_8 = Experiment(
    "thyme_table_8",
    "RL without SFT",
    PaperRow("Thyme", "table 8", "direct RL 68.2 aAcc, 52.7 perception, 67.4 HR-Bench 8K; with SFT 71.0, 59.1, 72.0"),
    (
        Arm("untrained", "no code ever seen", SEEING),
        Arm("direct", "GRPO from there", Model("direct_grpo", "grpo", SEEING, method="thyme")),
        Arm("grpo", "SFT, then GRPO", GRPO),
    ),
    (Comparison("grpo", "direct", "right"), Comparison("direct", "untrained", "right")),
    ("right", "executed", "tool_use"),
    FEW,
)
_BEFORE = {"learning_rate": 0.0, "temperature": 1.0, "generations": 2, "max_steps": 3}
ATS = Experiment(
    "thyme_ats",
    "Temperature 0 inside code (GRPO-ATS), before anything is learned",
    PaperRow("Thyme", "§4.3", "no table; more rollouts whose code runs is its reason"),
    (
        Arm(
            "plain",
            "sampled at temperature 1",
            Model("ats_off", "grpo", SFT, ("held_out",), "thyme", {**_BEFORE, "adaptive_temperature": False}),
            None,
        ),
        Arm(
            "ats",
            "temperature 0 inside code",
            Model("ats_on", "grpo", SFT, ("held_out",), "thyme", {**_BEFORE, "adaptive_temperature": True}),
            None,
        ),
    ),
    (Comparison("ats", "plain", "rolled_executable"), Comparison("ats", "plain", "rolled_right")),
    ("rolled_executable", "rolled_right"),
    FEW,
)
EXPERIMENTS = (LEARNING_PROOF, TABLE_6, TABLE_8, ATS)
