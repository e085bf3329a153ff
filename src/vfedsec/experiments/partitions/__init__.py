"""The partitions of the paper's experiments: who holds what, the job files, and the parties' tables."""
