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
# with a fixed seed; put the path of your own in its place.

# %%
import csv
import random
import tempfile
from pathlib import Path

import partage
from partage.logs import Columns, game_of_log, read_log

TRUTH = {"Text": 0.75, "Letter": 0.60, "Call": 0.65}  # only to make up the log
clinics = {"City": ["Text", "Letter"], "Harbour": ["Letter", "Call"], "Village": ["Text", "Call"]}
source = random.Random(0)
path = Path(tempfile.mkdtemp()) / "events.csv"
with path.open("w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["clinic", "reminder", "came"])
    for _ in range(1_500):
        clinic = source.choice(list(clinics))
        reminder = source.choice(clinics[clinic])
        writer.writerow([clinic, reminder, int(source.random() < TRUTH[reminder])])

# %% [markdown]
# ## The log
#
# A row says who did what, and what came of it. A clinic's shares are the reminders that it has rows of. The
# notes say what was found in the log, and whether one mean of each reminder fits all clinics.

# %%
log = read_log(path, Columns("clinic", "reminder", "came"))
made = game_of_log(log, horizon=2_000)
print("\n".join(made.notes))
for arm, reward in zip(log.arms, made.file.game.arms, strict=True):
    print(f"{arm:7} {reward.mean:.3f} came")

# %% [markdown]
# `partage log to-game events.csv --agent clinic --arm reminder --reward came > game.toml` writes the same
# game to a file.
#
# ## The forecast
#
# Each clinic will send 2,000 more reminders: together, with a settlement, against each clinic alone. The
# settlement is a pool. Every clinic prepays 10 patients' worth, which is the most that it can lose, and the
# pool pays for what was tried for everyone.

# %%
game = made.file.game
result = partage.play(game, partage.SharedIMED(), runs=200, seed=0, settlement="pool", prepaid=10)
alone = partage.play(game, partage.Thompson(), runs=200, seed=0, settlement="none", baseline=False)
print("patients who did not come, but would have with the best reminder")
print(f"together: {result.overall_regret.mean:6.1f} ± {result.overall_regret.stderr:.1f}")
print(f"alone:    {alone.overall_regret.mean:6.1f} ± {alone.overall_regret.stderr:.1f}")
print("nobody is worse off than alone:", result.individually_rational)

# %% [markdown]
# ## The settlement
#
# What each clinic loses on average, before and after the settlement, and alone.

# %%
print("clinic     before         after          alone")
for name in log.agents:
    losses = result.individual_regret(name), result.incentive_regret(name), alone.individual_regret(name)
    print(f"{name:8}", *(f"{loss.mean:6.1f} ± {loss.stderr:4.1f}" for loss in losses))

# %% [markdown]
# A log cannot show what it does not contain: whether a reminder works equally well at a clinic that never
# tried it. If the best reminder differs between clinics, following the group hurts those who differ. The
# notes above test that, where two clinics have tried the same reminder; [real members](../real-members.md)
# says what to do then.
