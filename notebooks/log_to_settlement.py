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
# # From a log to a settlement
#
# Three clinics remind patients of appointments by text message, letter or phone call, and have logged who
# came. Would they gain by learning together from now on, and who would pay whom? The log here is made up,
# with a fixed seed; put your own rows in its place.

# %%
import csv
import io
import random
from collections import defaultdict

import partage

TRUTH = {"Text": 0.75, "Letter": 0.60, "Call": 0.65}  # only to make up the log
clinics = {"City": ["Text", "Letter"], "Harbour": ["Letter", "Call"], "Village": ["Text", "Call"]}
source = random.Random(0)
log = io.StringIO()
writer = csv.writer(log)
writer.writerow(["clinic", "reminder", "came"])
for _ in range(1_500):
    clinic = source.choice(list(clinics))
    reminder = source.choice(clinics[clinic])
    writer.writerow([clinic, reminder, int(source.random() < TRUTH[reminder])])

# %% [markdown]
# ## The log
#
# A row says who did what, and what came of it. A clinic's shares are the reminders that it has rows of:
# what it has tried, it may share.

# %%
log.seek(0)
rewards, tried = defaultdict(list), defaultdict(set)
for row in csv.DictReader(log):
    rewards[row["reminder"]].append(float(row["came"]))
    tried[row["clinic"]].add(row["reminder"])

arms = sorted(rewards)
for arm in arms:
    mean = sum(rewards[arm]) / len(rewards[arm])
    error = (mean * (1 - mean) / len(rewards[arm])) ** 0.5
    print(f"{arm:7} {len(rewards[arm]):4} rows, {mean:.3f} ± {error:.3f} came")

# %% [markdown]
# ## The game
#
# Each arm pays what a row of the log paid, drawn at random. Each clinic will send 2,000 more reminders.

# %%
names = sorted(tried)
game = partage.Game(
    arms=[partage.Empirical(rewards[arm]) for arm in arms],
    sharing=partage.Sharing.lists([[arms.index(arm) for arm in tried[name]] for name in names], arms=len(arms)),
    horizon=2_000,
)

# %% [markdown]
# ## The forecast
#
# Together, with a settlement, against each clinic alone.

# %%
result = partage.play(game, partage.SharedIMED(), runs=200, seed=0, settlement="equal-share-expected")
alone = partage.play(game, partage.Thompson(), runs=200, seed=0, settlement="none", baseline=False)
print("patients who did not come, but would have with the best reminder")
print(f"together: {result.overall_regret.mean:6.1f} ± {result.overall_regret.stderr:.1f}")
print(f"alone:    {alone.overall_regret.mean:6.1f} ± {alone.overall_regret.stderr:.1f}")
print("nobody is worse off than alone:", result.individually_rational)

# %% [markdown]
# ## The settlement
#
# One play, settled: what each clinic lost on the way, in patients.

# %%
tally = partage.play_run(game, partage.SharedIMED(), seed=0)
best = max(sum(rewards[arm]) / len(rewards[arm]) for arm in arms)
gaps = [best - sum(rewards[arm]) / len(rewards[arm]) for arm in arms]
for name, explored, committed in zip(names, tally.explore, tally.commit, strict=True):
    lost = sum(gap * (a + b) for gap, a, b in zip(gaps, explored, committed, strict=True))
    print(f"{name:8} tried for everyone {int(explored.sum()):4} times, lost {lost:5.1f}")

frame = result.frame("agent")
print(frame)

# %% [markdown]
# A log cannot show what it does not contain: whether a reminder works equally well at a clinic that never
# tried it. If the best reminder differs between clinics, following the group hurts those who differ.
# `partage.play` reports what happens if all arms are the same for everyone; [real
# members](../real-members.md) says how to check that.
