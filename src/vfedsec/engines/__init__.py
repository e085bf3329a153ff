"""Engines move bytes between the aggregator and the parties; what the bytes mean is not their business."""
