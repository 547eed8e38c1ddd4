"""The game as PettingZoo environments, and partage's rules as players of them. Needs the extra `envs`.

`env(game)` is an AEC environment: agents act one after the other, and a broadcast is visible to the next agent, as in
`partage.play`. `parallel_env(game)` is a parallel environment: all agents of a step act at once, so a broadcast is
visible from the next step on.

An observation has two parts. `observation` is a vector of four numbers per arm: how often the arm was broadcast and
the sum of those rewards, and how often the agent pulled it privately and the sum of what it got. `action_mask` says
which actions are allowed. With N arms, action `arm` pulls the arm privately, and action `N + arm` pulls it and
broadcasts the reward. If the agent does not share the arm, the mask forbids this action, and whoever takes it all the
same pulls the arm privately: an environment never broadcasts what an agent does not share.
"""

from partage.errors import require

require("partage.envs", "envs")

from partage.envs.environments import BanditEnv, ParallelBanditEnv, env, parallel_env  # noqa: E402
from partage.envs.players import PolicyRule, RulePlayer, as_rule, play_rule  # noqa: E402

__all__ = [
    "BanditEnv",
    "ParallelBanditEnv",
    "PolicyRule",
    "RulePlayer",
    "as_rule",
    "env",
    "parallel_env",
    "play_rule",
]
