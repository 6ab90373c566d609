"""Shipped datasets and what people look at: parquet, cards, layouts, gallery, explanations, replay."""
