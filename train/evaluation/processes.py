"""An evaluation in several processes (``torchrun``, ``accelerate launch``): each rolls out its share of the questions.

The shares meet on the ledger. The first process then does the whole evaluation, and what the others wrote costs nothing
again: the report is that of one process. Each process loads the whole model, on a GPU of its own; a model that is
larger than a GPU is served (vLLM with several GPUs) and evaluated with ``--url``.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import torch.distributed as dist

from darkroom.train.evaluation.evaluation_run import EvaluationRun
from darkroom.train.evaluation.questions import QuestionSet

_LONGEST_WAIT = timedelta(days=7)
"""Of a process that has finished for the last one."""


def n_processes() -> int:
    """Processes of this launch."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def roll_out_share(run: EvaluationRun, question_sets: Sequence[QuestionSet]) -> None:
    """Rolls out this process's questions, then waits for the other processes to have finished theirs.

    Raises ``TrainError`` as ``EvaluationRun.run`` does.
    """
    rank, n = int(os.environ["RANK"]), n_processes()
    dist.init_process_group("gloo", timeout=_LONGEST_WAIT)
    try:
        run.roll_out([replace(questions, questions=questions.questions[rank::n]) for questions in question_sets])
        dist.barrier()
    finally:
        dist.destroy_process_group()
