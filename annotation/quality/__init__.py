"""Quality of annotation: agreement, annotators, outliers, the report."""
