"""How large a game may be that a form or a page simulates while somebody waits.

Arms of gap g need about log T / g^2 broadcasts, and of N random means the best two are closer than g with a
probability of about N g. So a run takes about 2 N sqrt(M T log T) broadcasts on average. Where this is too much, a
smaller game is played, first with fewer members and then with a shorter horizon. This is the case from 3 x 10^6 pulls
on for up to nine arms, and from about 10^5 on for twenty.
"""

import math

PULLS = 3 * 10**6  # of all members together, in one run
RUN = 1e6  # broadcasts times arms of one run, roughly


def affordable(arms: int, members: int, horizon: int) -> tuple[int, int]:
    """Return the members and the horizon of a game of this size, or of a smaller one that does not take too long.

    >>> affordable(3, 12, 10_000), affordable(3, 1000, 10**6), affordable(20, 50, 10**5)
    ((12, 10000), (3, 1000000), (20, 6785))
    """
    pulls = max(1000.0, min(PULLS, (RUN / (2 * arms * arms)) ** 2 / math.log(max(horizon, 2))))
    fewer = max(min(members, arms), min(members, int(pulls / horizon)))
    return fewer, min(horizon, max(int(pulls / fewer), 100))
