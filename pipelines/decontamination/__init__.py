"""Which training rows show or say what a benchmark shows or says (docs/decontamination.md).

index = BenchmarkIndex.build(read_benchmarks(Path("benchmarks.yaml")), workspace.home / "benchmarks")
report = Scanner(index, workspace.images).report(TrainingRow.of_sample(sample) for sample in samples)
"""

from pipelines.decontamination.base import (
    CONTAMINATION,
    BenchmarkCounts,
    Contamination,
    ContaminationKind,
    DecontaminationFault,
    TrainingRow,
    to_table,
)
from pipelines.decontamination.benchmarks import Benchmark, read_benchmarks
from pipelines.decontamination.index import BenchmarkIndex
from pipelines.decontamination.scan import Report, Scanner

__all__ = [
    "CONTAMINATION",
    "Benchmark",
    "BenchmarkCounts",
    "BenchmarkIndex",
    "Contamination",
    "ContaminationKind",
    "DecontaminationFault",
    "Report",
    "Scanner",
    "TrainingRow",
    "read_benchmarks",
    "to_table",
]
