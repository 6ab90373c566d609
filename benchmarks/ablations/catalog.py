"""The experiments. Each says the paper's row; a model's settings are what differs from ``models.SFT`` and ``GRPO``."""

from benchmarks.ablations.experiment import Arm, Comparison, Experiment, PaperRow
from benchmarks.ablations.models import Model

TUNED = (0, 1, 2)
"""Seeds that earlier versions of this project were run on."""
FRESH = (101, 102, 103, 104, 105, 106, 107, 108)
"""Seeds that nothing was tuned on."""
FEW = FRESH[:3]

RANDOM = Model("random", "random", rows=("train", "closeups"))
SEEING = Model("untrained", "sft", RANDOM, ("closeups",))
SFT = Model("masked", "sft", SEEING)
GRPO = Model("grpo", "grpo", SFT, method="thyme")


def _reinforced(name: str, method: str, **settings: object) -> Model:
    return Model(name, "grpo", SFT, method=method, settings=settings)


def _sft(name: str, **settings: object) -> Model:
    """SFT goes on with rows with one look and rows with two."""
    return Model(name, "sft", SFT, ("train", "second_looks"), settings={"max_steps": 150, **settings})


_SECOND = {"max_rounds": 3}
_FOUR = {"max_rounds": 4}
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
THYME_6 = Experiment(
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
THYME_8 = Experiment(
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
PYVISION_7 = Experiment(
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
            _reinforced("pyvision_0", "pyvision_without_tool_reward", max_rounds=4),
            _FOUR,
        ),
        Arm("reward", "and 0.1 per call", _reinforced("pyvision", "pyvision", max_rounds=4), _FOUR),
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
CODEV_2 = Experiment(
    "codev_table_2",
    "The tool reward beside accuracy",
    PaperRow(
        "CodeV", "table 2", "accuracy only 51.2 (reasoning) and 67.5 (perception); with the tool reward 54.2, 69.7"
    ),
    (
        Arm("sft", "before RL", SFT),
        Arm("accuracy_only", "accuracy alone", _reinforced("codev_0", "codev_accuracy_only")),
        Arm("tool_reward", "and the tool reward, boxes as the judge", _reinforced("codev", "codev_by_boxes")),
    ),
    (
        Comparison("tool_reward", "accuracy_only", "right"),
        Comparison("tool_reward", "accuracy_only", "faithful"),
    ),
    ("right", "faithful", "tool_use"),
    FEW,
)
_SUITABLE = {"options": {"by_suitability": False}}
_TRIAL = {"learning_rate": 0.0, "temperature": 0.01, "generations": 2, "batch_size": 46, "max_steps": 4}
_FIGR = _reinforced("figr", "figr", **_SUITABLE)
_BLIND = _reinforced("figr_blind", "figr_without_visual_feedback")


def _trial(name: str, start: Model, method: str, **settings: object) -> Model:
    """Rollouts of ``start`` on held-out questions under the method's own terms, at a rate of 0."""
    return Model(name, "grpo", start, ("held_out",), method, {**_TRIAL, **settings})


FIGR_2 = Experiment(
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
_BEFORE = {"learning_rate": 0.0, "temperature": 1.0, "generations": 2, "max_steps": 3}
THYME_ATS = Experiment(
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
EXPERIMENTS = {one.name: one for one in (LEARNING_PROOF, THYME_6, THYME_8, THYME_ATS, PYVISION_7, CODEV_2, FIGR_2)}
