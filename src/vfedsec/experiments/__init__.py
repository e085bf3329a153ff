"""Baselines, comparisons, the paper's experiments, and what reports are made of."""
