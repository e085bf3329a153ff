"""Who shares which columns with whom."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation import ACTIVE, job_of
from vfedsec.protocol.roles import Roles

JOBS = st.builds(
    lambda groups, fusion: job_of(groups, fusion=fusion),
    st.lists(st.integers(1, 3), min_size=1, max_size=4),
    st.sampled_from(["concat", "sum"]),
)


@given(JOBS)
def test_slices_cover_the_embedding_once(job):
    roles = Roles(job)
    columns = [column for part in roles.slices for column in range(part.start, part.stop)]
    assert columns == list(range(roles.width)) == list(range(job.embedding_width))
    assert sum(roles.slice_width(index) for index in range(len(roles.slices))) == roles.width


@given(JOBS)
def test_every_passive_party_adds_to_one_slice(job):
    roles = Roles(job)
    sharing = [party for index in range(len(roles.slices)) for party in roles.sharing(index)]
    assert sorted(sharing) == sorted(roles.passive)
    assert all(party in roles.sharing(roles.slice_of(party)) for party in roles.passive)


@given(JOBS)
def test_partners_are_mutual_and_never_oneself(job):
    roles = Roles(job)
    for party in roles.parties:
        assert party not in roles.partners(party)
        assert all(party in roles.partners(other) for other in roles.partners(party))


@given(JOBS)
def test_the_active_party_is_a_partner_of_everybody(job):
    roles = Roles(job)
    assert set(roles.partners(ACTIVE)) == set(roles.passive)


def test_groups_have_slices_of_their_own_with_concat_and_one_in_common_with_sum():
    concat, total = Roles(job_of((2, 1))), Roles(job_of((2, 1), fusion="sum"))
    assert concat.slices == (slice(0, 4), slice(4, 8))
    assert total.slices == (slice(0, 4),)
    assert concat.partners("b0") == (ACTIVE,)
    assert total.partners("b0") == (ACTIVE, "a0", "a1")


@pytest.mark.parametrize("fusion", ["concat", "sum"])
def test_only_members_of_groups_of_several_are_replicated(fusion):
    roles = Roles(job_of((2, 1), fusion=fusion))
    assert [party for party in roles.parties if roles.is_replicated(party)] == ["a0", "a1"]
    assert roles.group_of("a1").name == "group-a"
