"""What is written down before a run: the job that all parties share, and each party's own file."""
