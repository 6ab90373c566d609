"""Image measurements and transforms: crops, rotation, registration, legibility, OCR."""
