# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Reproduce and vary the paper
#
# The paper's first experiment asks what happens when more agents join. Ten arms have the means 0.9, 0.8 …
# 0.0, each agent shares one arm, and every agent pulls T times. This notebook plays it with T = 20,000 and
# 20 runs, which takes seconds; `partage reproduce balanced` plays it at full size.

# %%
import matplotlib.pyplot as plt

import partage

MEANS = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0.0]
AGENTS = [10, 50, 100, 200]


def regret(rule, agents, horizon=20_000, sharing=None):
    """Return the overall regret of a group, as an estimate with its standard error."""
    sharing = sharing or partage.Sharing.round_robin(agents=agents, arms=len(MEANS))
    game = partage.Game(arms=partage.bernoulli(MEANS), sharing=sharing, horizon=horizon)
    return partage.play(game, rule, runs=20, seed=0, settlement="none", baseline=False).overall_regret


# %% [markdown]
# ## The paper's rule
#
# The overall regret hardly depends on the number of agents, so what each of them loses falls.

# %%
etc = {agents: regret(partage.BalancedETC(), agents) for agents in AGENTS}
for agents, estimate in etc.items():
    mean, error = estimate.mean, estimate.stderr
    print(f"{agents:4} agents: {mean:7.1f} ± {error:4.1f} together, {mean / agents:6.1f} each")

# %% [markdown]
# ## Vary the rule
#
# Balanced-GLR and Shared-IMED need far fewer results to find the best arm. Alone, an agent would take
# Thompson sampling; `agents` of them lose that many times as much.

# %%
rules = [partage.SharedIMED(), partage.BalancedGLR(), partage.BalancedETC()]
one = regret(partage.Thompson(), 1, sharing=partage.Sharing.nothing(agents=1, arms=len(MEANS)))
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for rule in rules:
    lines = etc if rule.name == "balanced-etc" else {agents: regret(rule, agents) for agents in AGENTS}
    means, errors = ([getattr(each, name) for each in lines.values()] for name in ("mean", "stderr"))
    axes.errorbar(list(lines), means, yerr=errors, marker="o", label=rule.name)
axes.errorbar(
    AGENTS, [n * one.mean for n in AGENTS], yerr=[n * one.stderr for n in AGENTS], label="alone", linestyle="--"
)
axes.set(xlabel="agents", ylabel="overall regret (± standard error)", yscale="log", title="Ten arms, T = 20,000")
axes.legend()
plt.show()

# %% [markdown]
# Alone, the regret grows in proportion to the number of agents. Together it stays almost the same.
#
# ## Vary who shares
#
# What if a single agent shares the best arm? It has to deliver all results of that arm, one per step, while
# all the others wait and pull something else.

# %%
hundred = [[agent % 10] for agent in range(100)]
scarce = [[0] if agent == 0 else [1 + agent % 9] for agent in range(100)]  # only the first agent shares the best arm
for name, lists in (("ten sharers of the best arm", hundred), ("one sharer of the best arm", scarce)):
    estimate = regret(partage.SharedIMED(), 100, sharing=partage.Sharing.lists(lists, arms=10))
    print(f"{name:28} {estimate.mean:7.1f} ± {estimate.stderr:4.1f}")

# %% [markdown]
# Change `MEANS`, the horizon or the rule, and run the cells again.
