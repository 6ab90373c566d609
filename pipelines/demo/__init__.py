"""The annex: embedded images, questions and the oracle that answers them. The product never imports it."""
