"""Thyme: SFT's strategies (table 6), rewards (table 7), RL without SFT (table 8), GRPO-ATS."""

from dataclasses import replace

from measurements.ablations.catalog.starts import FEW, FRESH, FURTHER, GRPO, SEEING, SFT, reinforced, seeing
from measurements.ablations.experiment import HELD_OUT, Arm, Comparison, Experiment, PaperRow
from measurements.ablations.models import SFT as SFT_SETTINGS, Model

LEARNING_PROOF = Experiment(
    "learning_proof",
    "Does GRPO after SFT give more right answers?",
    PaperRow(
        "Learning proof",
        "beside Thyme's tables 4 and 6",
        "no table has SFT alone and SFT with GRPO on the same benchmarks",
    ),
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
LEARNING_PROOF_AGAIN = replace(
    LEARNING_PROOF,
    name="learning_proof_again",
    title="The same on fourteen further seeds",
    note="The same recipe, judged by these seeds alone.",
    comparisons=LEARNING_PROOF.comparisons[:3],
    seeds=FURTHER,
)
_EVERYTHING = ("train", "second_looks", "sums")
"""One look, two looks of which the first is wrong, and sums."""
_SEEING_EVERYTHING = seeing("untrained_everything", *_EVERYTHING)
_ANNEALING = {
    "phases": [
        {"name": "images", "families": ["crop", "error_correction"]},
        {
            "name": "maths",
            "families": ["math_code"],
            "learning_rate": SFT_SETTINGS["learning_rate"] / 10,
            "max_steps": 40,
        },
    ]
}
"""Thyme §3.2 and appendix C.1: then the maths alone, at a tenth of the rate. Rows say which of their rounds count:
the last one of image rows, all of maths."""


def _sft(name: str, **settings: object) -> Model:
    return Model(name, "sft", _SEEING_EVERYTHING, _EVERYTHING, settings=settings)


def _table_6(name: str, says: str, model: Model) -> Arm:
    return Arm(name, says, model, {"max_rounds": 3}, (HELD_OUT, "held_out_sums"))


TABLE_6 = Experiment(
    "thyme_table_6",
    "Which tokens and rounds SFT trains, and the maths last",
    PaperRow(
        "Thyme",
        "table 6",
        "V* 72.7 naive, 78.5 masked, 78.5 last round only, 77.5 without comments, 79.6 annealed; MME-RealWorld-Lite "
        "(perception) 44.0, 50.1, 50.5, 49.1, 51.8; MathVista 67.6, 68.7, 68.4, 66.7, 68.7",
    ),
    (
        _table_6(
            "naive", "all tokens, observations too", _sft("naive", train_observations=True, loss_policy="all_rounds")
        ),
        _table_6("masked", "observations masked, all rounds", _sft("all_rounds", loss_policy="all_rounds")),
        _table_6("last_round", "and only the last round", _sft("last_round", loss_policy="last_round")),
        _table_6(
            "no_comments",
            "and code without comments",
            _sft("no_comments", loss_policy="last_round", without_comments=True),
        ),
        _table_6("annealed", "the last round of image rows, then the maths alone", _sft("annealed", **_ANNEALING)),
    ),
    (
        Comparison("masked", "naive", "right"),
        Comparison("last_round", "masked", "right"),
        Comparison("last_round", "masked", "calls", "less"),
        Comparison("last_round", "no_comments", "right"),
        Comparison("annealed", "last_round", "sums_executed"),
    ),
    ("right", "executed", "calls", "sums_right", "sums_executed"),
    FEW,
    "One row in fifteen is a sum, which code computes; of the others half look at a wrong place first and correct "
    "themselves. The paper finds no significant gain of annealing in accuracy, and code for computing that is written "
    "more often. Here annealing is the only time that the model sees sums: "
    "40 steps do not teach them.",
)
TABLE_7 = Experiment(
    "thyme_table_7",
    "What a right answer earns besides",
    PaperRow(
        "Thyme",
        "table 7",
        "average of seven splits 63.6 outcome and format, 65.7 with consistency, 62.9 with process, 64.5 with code "
        "reward; V* 80.1, 81.8, 80.1, 82.7",
    ),
    (
        Arm("outcome", "outcome and format", GRPO),
        Arm("code", "and the share of code that ran", reinforced("thyme_code", "thyme_code")),
        Arm(
            "process",
            "and the quality of the thinking",
            reinforced("thyme_process", "thyme_by_rules", options={"addition": "process"}),
        ),
        Arm(
            "consistency",
            "and whether the answer follows from it",
            reinforced("thyme_consistency", "thyme_by_rules", options={"addition": "consistency"}),
        ),
    ),
    (
        Comparison("consistency", "outcome", "right"),
        Comparison("consistency", "process", "right"),
        Comparison("process", "outcome", "right", "less"),
        Comparison("code", "outcome", "calls"),
    ),
    ("right", "executed", "calls"),
    FEW,
    "Rules stand in for the judge: consistent is a thought that ends with the answer's colour and no other; the "
    "quality of thinking is the share of turns with a thought and of sentences that are no repetition. The first arm "
    "is Thyme's method without a judge, which then pays for outcome and format alone.",
)
TABLE_8 = Experiment(
    "thyme_table_8",
    "RL without SFT",
    PaperRow("Thyme", "table 8", "direct RL 68.2 aAcc, 52.7 perception, 67.4 HR-Bench 8K; with SFT 71.0, 59.1, 72.0"),
    (
        Arm("untrained", "no code ever seen", SEEING),
        Arm("direct", "GRPO from there", Model("direct_grpo", "grpo", SEEING, ("questions",), "thyme")),
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

ATS_TRAINING = Experiment(
    "thyme_ats_training",
    "Temperature 0 inside code (GRPO-ATS), over a training",
    PaperRow("Thyme", "§4.3", "no table; code that runs and is worth learning from is its reason"),
    (
        Arm("plain", "sampled at temperature 1", GRPO),
        Arm("ats", "temperature 0 inside code", reinforced("grpo_ats", "thyme", adaptive_temperature=True)),
    ),
    (
        Comparison("ats", "plain", "rolled_executable"),
        Comparison("ats", "plain", "executed"),
        Comparison("ats", "plain", "right"),
    ),
    ("rolled_executable", "executed", "right"),
    FEW,
)
EXPERIMENTS = (LEARNING_PROOF, LEARNING_PROOF_AGAIN, TABLE_6, TABLE_7, TABLE_8, ATS, ATS_TRAINING)
