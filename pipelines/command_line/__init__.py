"""What every command of ``darkroom`` shares: its console, and errors as one line."""
