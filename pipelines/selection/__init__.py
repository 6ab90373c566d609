"""Which rows may ship: duplicates, decontamination, stratified samples, splits."""
