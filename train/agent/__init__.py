"""A model that thinks with images as an ordinary endpoint: ``darkroom agent serve``.

A benchmark tool sends a chat completion with a question and its images; the rollout loop and the sandbox run behind it,
and the answer comes back as the completion's content, the trajectory beside it.
"""
