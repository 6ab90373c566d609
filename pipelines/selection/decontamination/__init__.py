"""Find training rows that show or say what a benchmark shows or says (docs/decontamination.md).

index = BenchmarkIndex.build(read_benchmarks(Path("benchmarks.yaml")), workspace.local / "benchmarks")
report = Scanner(index, workspace.images).report(TrainingRow.of_sample(sample) for sample in samples)
"""

from darkroom.pipelines.selection.decontamination.benchmarks import (
    CONTAMINATION,
    Benchmark,
    BenchmarkCounts,
    Contamination,
    ContaminationKind,
    DecontaminationError,
    TrainingRow,
    read_benchmarks,
    to_table,
)
from darkroom.pipelines.selection.decontamination.index import BenchmarkIndex, ContaminationReport, Scanner

__all__ = [
    "CONTAMINATION",
    "Benchmark",
    "BenchmarkCounts",
    "BenchmarkIndex",
    "Contamination",
    "ContaminationKind",
    "ContaminationReport",
    "DecontaminationError",
    "Scanner",
    "TrainingRow",
    "read_benchmarks",
    "to_table",
]
