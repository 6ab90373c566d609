"""A plug-in for Label Studio 1.23.2 (no fork): rules at submission, roles, a fence around what annotators may call."""
