"""A model that thinks with images as an ordinary endpoint: ``darkroom agent serve``. A chat completion brings a
question and its images; the answer comes back as its content, the trajectory of the rollout beside it."""
