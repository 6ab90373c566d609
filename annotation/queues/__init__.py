"""Queues beside the rounds: review, verification, suitability."""
