"""RL rows with their sandbox and rewards for other trainers: ``darkroom environment serve``. A trainer resets an
episode to a row, sends what its model writes, and reads observations and in the end the reward."""
