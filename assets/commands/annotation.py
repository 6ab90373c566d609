"""``darkroom annotate finish``: what people accepted becomes data to train on."""

from annotation.commands import CONSOLE
from assets.commands.build import RlQuota, RlRows, quotas_of


def finish(
    rows: RlRows = None,
    quota: RlQuota = None,
) -> None:
    """Build the RL dataset from the accepted records, as of the last sync.

    The journal becomes the tables annotations, cross_checks and accepted_annotations; accepted records with an answer
    that a grader can tell from wrong ones, in no benchmark and without near-duplicates, become RL rows beside those of
    other sources. Run it at any time, also while a campaign goes on: finished work is skipped, an interrupted run
    resumes. In the UI it is the job `finished_annotations`.
    """
    from assets.runs.build import build_annotated

    build_annotated(CONSOLE, n_rows=rows, source_quotas=quotas_of(quota or [], "SOURCE"))
