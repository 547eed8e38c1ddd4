"""A list of arms in no order, from which any arm is taken out in one step: `slot` has the place of each arm."""

import numpy as np

from partage.compiled import inlined

_NONE = np.int64(-1)  # the slot of an arm that is not in the list


@inlined
def take_out(arm, n_listed, listed, slot):
    """Take an arm off a list: the last one moves to its place. Return how many are left."""
    last = listed[n_listed - 1]
    listed[slot[arm]], slot[last] = last, slot[arm]
    slot[arm] = _NONE
    return n_listed - 1
