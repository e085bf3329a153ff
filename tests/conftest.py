"""Settings of all tests. `FAST=1` runs few examples of each property, `HYPOTHESIS_PROFILE=ci` many."""

from __future__ import annotations

import os

import torch
from hypothesis import HealthCheck, settings

_SLOW_MACHINE = (HealthCheck.too_slow, HealthCheck.data_too_large)

settings.register_profile("fast", max_examples=5, deadline=None, suppress_health_check=_SLOW_MACHINE)
settings.register_profile("default", max_examples=30, deadline=None, suppress_health_check=_SLOW_MACHINE)
settings.register_profile("ci", max_examples=150, deadline=None, suppress_health_check=_SLOW_MACHINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("fast" if os.environ.get("FAST") else "default"))

# The networks of tests are so small that threads only get in each other's way.
torch.set_num_threads(1)
