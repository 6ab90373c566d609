"""Dataset rows as training examples: conversations, encoding, loss masks."""
