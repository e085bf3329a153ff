"""A deputy of the aggregator: before anybody is greeted, and once every party has its model."""

import pytest

from deputy import Deputy
from federation import Federation, job_of


@pytest.fixture
def deputy():
    return Deputy(Federation(job_of(), watched=False))


@pytest.fixture
def built(deputy):
    deputy.build()
    return deputy
