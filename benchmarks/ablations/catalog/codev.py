"""CodeV: the tool reward beside accuracy (table 2)."""

from benchmarks.ablations.catalog.starts import FEW, SFT, reinforced
from benchmarks.ablations.experiment import Arm, Comparison, Experiment, PaperRow

TABLE_2 = Experiment(
    "codev_table_2",
    "The tool reward beside accuracy",
    PaperRow(
        "CodeV", "table 2", "accuracy only 51.2 (reasoning) and 67.5 (perception); with the tool reward 54.2, 69.7"
    ),
    (
        Arm("sft", "before RL", SFT),
        Arm("accuracy_only", "accuracy alone", reinforced("codev_0", "codev_accuracy_only")),
        Arm("tool_reward", "and the tool reward, boxes as the judge", reinforced("codev", "codev_by_boxes")),
    ),
    (
        Comparison("tool_reward", "accuracy_only", "right"),
        Comparison("tool_reward", "accuracy_only", "faithful"),
    ),
    ("right", "faithful", "tool_use"),
    FEW,
)
EXPERIMENTS = (TABLE_2,)
