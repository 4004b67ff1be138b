"""The live figure of lesson 10: what a step of generation computes."""

import numpy as np
import pytest

from course_lib.live import kv_cache


def test_the_prompt_is_computed_whole_with_and_without_a_cache():
    for cache in (True, False):
        state = kv_cache.compute(0, cache)
        assert (state.t, state.base, state.t_total) == (4, 0, 4)


@pytest.mark.parametrize("step", range(1, 7))
def test_a_step_with_a_cache_computes_one_row(step):
    state = kv_cache.compute(step, True)
    now = np.argwhere(state.pairs == kv_cache.NOW)
    assert set(now[:, 0]) == {3 + step}
    assert sorted(now[:, 1]) == list(range(4 + step))


def test_a_step_without_a_cache_computes_every_allowed_pair_again():
    state = kv_cache.compute(3, False)
    assert (state.pairs == kv_cache.NOW).sum() == 7 * 8 / 2
    assert not (state.pairs == kv_cache.BEFORE).any()


def test_the_totals_count_rectangles():
    without, with_cache = kv_cache.compute(2, True).totals
    assert without[:3].tolist() == [16, 16 + 25, 16 + 25 + 36]
    assert with_cache[:3].tolist() == [16, 16 + 5, 16 + 5 + 6]
