"""Datasets as their authors publish them: names, columns and folders are real, the two images and the words are not."""

from __future__ import annotations

from tests.pipelines.sources.published_boxes import BOXES
from tests.pipelines.sources.published_conversations import CONVERSATIONS
from tests.pipelines.sources.published_files import Published
from tests.pipelines.sources.published_questions import QUESTIONS
from tests.pipelines.sources.published_tables import TABLES

PUBLISHED: dict[str, Published] = {**BOXES, **QUESTIONS, **CONVERSATIONS, **TABLES}
