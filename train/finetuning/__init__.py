"""Supervised fine-tuning: what is set, and the phases that are trained one after the other."""
