"""Selection of the rows that may ship: duplicates, decontamination, stratified samples, splits."""
