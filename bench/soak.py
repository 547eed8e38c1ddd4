"""Mixed load for some minutes, with the server's memory at the start, in the middle and at the end.

`make bench PART=soak` takes ten minutes, and `python -m bench.soak --minutes 3` three.
"""

import argparse
import random
import tempfile
import threading
import time
from collections import Counter

import httpx
from bench.freezing import Server, bearer, health
from rich.console import Console
from rich.table import Table

COLLABORATIONS, AGENTS = 4, 6


def live(server, path, token, over, answers, seed):
    """Do what members do, in any order, at about fifty requests a second."""
    choose = random.Random(seed)
    arms = [f"arm {arm}" for arm in range(5)]
    with httpx.Client(base_url=server.url, headers=bearer(token), timeout=60) as client:
        while time.monotonic() < over:
            deed = choose.random()
            if deed < 0.8:
                answer = client.post(f"{path}/ask", json={})
                pull = answer.json() if answer.status_code == 200 else {}
                if pull.get("share"):
                    answer = client.post(f"{path}/tell", json={"pull": pull["pull"], "reward": choose.random()})
            elif deed < 0.9:
                answer = client.get(f"{path}/board")
            elif deed < 0.95:
                answer = client.patch(f"{path}/agents/me", json={"shares": choose.sample(arms, 4)})
            elif deed < 0.99:
                answer = client.get(f"{path}/settlement")
            else:
                with client.stream("GET", f"{path}/events") as answer:
                    for place, _ in enumerate(answer.iter_raw()):
                        if place == 5 or time.monotonic() > over:
                            break
            answers[answer.status_code] += 1
            time.sleep(0.02)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    given = parser.parse_args(arguments)
    seconds, answers = 60 * given.minutes, Counter()
    with tempfile.TemporaryDirectory(prefix="partage-soak-") as folder, Server(folder) as server:
        made = [server.create(5, AGENTS, settlement="equal-share", underwriting=0) for _ in range(COLLABORATIONS)]
        lives = [(path, token) for path, tokens in made for token in tokens]
        over = time.monotonic() + seconds
        threads = [
            threading.Thread(target=live, args=(server, *one, over, answers, seed)) for seed, one in enumerate(lives)
        ]
        memory = []
        with health(server) as figures:
            for thread in threads:
                thread.start()
            for share in (0.1, 0.5, 1.0):  # the first tenth fills the caches
                time.sleep(max(0.0, over - (1 - share) * seconds - time.monotonic()))
                memory.append(server.memory())
            for thread in threads:
                thread.join()
    table = Table(title=f"{given.minutes:g} minutes of mixed load")
    for column in ("memory after a tenth, MB", "in the middle", "at the end", "/health p50, ms", "p99", "max"):
        table.add_column(column, justify="right")
    sizes = ["" if one is None else f"{one:,.0f}" for one in memory]
    table.add_row(*sizes, *(f"{figures[name]:.1f}" for name in ("p50", "p99", "max")))
    Console(width=140).print(table)
    print(f"{sum(answers.values()):,} answers: " + ", ".join(f"{code}: {n:,}" for code, n in sorted(answers.items())))


if __name__ == "__main__":
    main()
