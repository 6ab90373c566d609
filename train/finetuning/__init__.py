"""Supervised fine-tuning: its settings, and the phases that are trained one after the other."""
