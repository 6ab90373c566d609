"""Words of the command line that take no heavy library to know.

``Engine`` is who generates rollouts in GRPO. ``transformers``: the training process itself, on one machine or many.
``vllm_colocate``: vLLM inside the training process, on GPUs. ``vllm_server``: ``trl vllm-serve`` elsewhere; for one
training process, because rollouts of several processes do not take the same number of turns, and the server is asked by
all at once.
"""

from __future__ import annotations

from typing import Literal

Engine = Literal["transformers", "vllm_colocate", "vllm_server"]
LossType = Literal["grpo", "dapo"]
"""``grpo``: a mean over each rollout's tokens, then over rollouts. ``dapo``: over all tokens of the batch."""
Rubric = Literal["strict", "paper"]
"""What a picture earns that is no evidence (``train.judging.judges.MATCHES``)."""
Scale = Literal["group", "none"]
"""Whether advantages are divided by the group's standard deviation."""
Schedule = Literal["linear", "cosine", "constant"]
"""How the learning rate goes on from its peak: to 0 in a line, in half a cosine, or not at all."""
