"""Secure vertical federated learning that survives unreliable connections."""

__version__ = "0.1.0"
