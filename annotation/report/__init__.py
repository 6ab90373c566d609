"""A campaign's quality for people: one page, plots and tables."""

from annotation.report.page import write_report
from annotation.report.plots import plots
from annotation.report.summary import figures, people_rows, summary

__all__ = ["figures", "people_rows", "plots", "summary", "write_report"]
