"""The rounds of a campaign: pool, tasks, submissions, journal, acceptance."""
