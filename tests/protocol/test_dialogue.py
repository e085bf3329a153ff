"""How the aggregator carries letters, and asks again."""

import pytest

from deputy import EVERYBODY
from federation import ACTIVE, Federation, job_of
from vfedsec.engines.faults import Fault
from vfedsec.errors import RemoteProtocolError
from vfedsec.protocol.messages import Letter


def check_address(sender, receiver):
    """Of a letter that a0 posts."""
    aggregator = Federation(job_of(), watched=False).simulation.aggregator
    aggregator._check_address("a0", Letter(sender, receiver, "x", 1, bytes(8), bytes(8), memoryview(b"")))


@pytest.mark.parametrize("receiver", ["a1", ACTIVE])
def test_a_letter_to_a_partner_is_carried(receiver):
    check_address("a0", receiver)


def test_a_letter_in_somebody_elses_name_is_not_carried():
    with pytest.raises(RemoteProtocolError, match="a0 cannot post a letter from 'a1' to 'active'"):
        check_address("a1", ACTIVE)


@pytest.mark.parametrize("receiver", ["b0", "nobody", "a0"])
def test_a_letter_to_anybody_but_a_partner_is_not_carried(receiver):
    with pytest.raises(RemoteProtocolError, match=f"a0 cannot post a letter from 'a0' to '{receiver}'"):
        check_address("a0", receiver)


@pytest.mark.parametrize("kind", ["mail", "prepare"])
@pytest.mark.parametrize("party", EVERYBODY)
def test_a_reply_that_is_lost_in_the_preparation_is_given_again(kind, party):
    """Asked anew, a party would send letters twice or refuse."""
    federation = Federation(job_of(rounds=2))
    federation.script.only = lambda exchange: exchange.kind == kind
    federation.script.lose(party, Fault.MIDDLE)
    federation.simulation.prepare()
    asked = [heard.request for heard in federation.heard if (heard.party, heard.exchange.kind) == (party, kind)]
    assert not federation.script.strikes[party]
    assert asked[0] == asked[1]
