"""CodeV: the tool reward beside accuracy, in right answers (table 2) and in faithfulness (figure 5)."""

from measurements.ablations.catalog.starts import FEW, SFT, reinforced
from measurements.ablations.experiment import Arm, Comparison, Experiment, PaperRow

_ARMS = (
    Arm("sft", "before RL", SFT),
    Arm("accuracy_only", "accuracy alone", reinforced("codev_0", "codev_by_boxes", options={"weight_tool": 0.0})),
    Arm("tool_reward", "and the tool reward, boxes as the judge", reinforced("codev", "codev_by_boxes")),
)
TABLE_2 = Experiment(
    "codev_table_2",
    "The tool reward beside accuracy",
    PaperRow(
        "CodeV", "table 2", "accuracy only 51.2 (reasoning) and 67.5 (perception); with the tool reward 54.2, 69.7"
    ),
    _ARMS,
    (Comparison("tool_reward", "accuracy_only", "right"), Comparison("tool_reward", "accuracy_only", "faithful")),
    ("right", "faithful", "tool_use"),
    FEW,
)
FIGURE_5 = Experiment(
    "codev_figure_5",
    "Faithfulness over a training, with and without the tool reward",
    PaperRow(
        "CodeV",
        "figure 5",
        "on V* and HR-Bench 4K its rate of faithful tool use is 1.3 to 2 times that of other models with tools",
    ),
    _ARMS[1:],
    (
        Comparison("tool_reward", "accuracy_only", "last_faithful"),
        Comparison("tool_reward", "accuracy_only", "faithful"),
    ),
    ("first_faithful", "last_faithful", "faithful", "tool_use"),
    FEW,
    "The paper compares released models; here one recipe with and without the reward, which are the models of table 2. "
    "Faithful is a rollout of which an image shows half of the region or more; the share is of all rollouts.",
)
EXPERIMENTS = (TABLE_2, FIGURE_5)
