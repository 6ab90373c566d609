"""Find training rows that show or say what a benchmark shows or says (docs/decontamination.md).

index = BenchmarkIndex.build(read_benchmarks(Path("benchmarks.yaml")), workspace.local / "benchmarks")
report = Scanner(index, workspace.images).report(TrainingRow.of_sample(sample) for sample in samples)
"""

from darkroom.pipelines.selection.decontamination.benchmarks import (
    CONTAMINATION as CONTAMINATION,
    Benchmark as Benchmark,
    BenchmarkCounts as BenchmarkCounts,
    Contamination as Contamination,
    ContaminationKind as ContaminationKind,
    DecontaminationError as DecontaminationError,
    TrainingRow as TrainingRow,
    read_benchmarks as read_benchmarks,
    to_table as to_table,
)
from darkroom.pipelines.selection.decontamination.images import shown_parts as shown_parts
from darkroom.pipelines.selection.decontamination.index import (
    BenchmarkIndex as BenchmarkIndex,
    ContaminationReport as ContaminationReport,
    Scanner as Scanner,
)
