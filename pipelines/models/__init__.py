"""Talking to models: policies, protocols, prompts, messages and model servers."""
