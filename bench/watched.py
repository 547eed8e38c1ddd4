"""`python -m bench.watched DATABASE FILE`: a server that measures how long its event loop is kept busy.

On a machine that others use, `/health` also waits for them. So a task looks every few milliseconds how late it is,
and how much processor time the loop's thread has used since: the lesser is how long a request would have waited
with a core to itself. The server writes the figures to FILE when it stops.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from partage.service import serve

PAUSE = 0.005  # seconds


async def watch(busy):
    while True:
        began, used = time.perf_counter(), time.thread_time()
        await asyncio.sleep(PAUSE)
        busy.append(1000 * max(0.0, min(time.perf_counter() - began - PAUSE, time.thread_time() - used)))


def main(database, file):
    busy = []
    original = serve.application

    def application():
        app = original()
        tasks = []
        app.on_startup.append(lambda: tasks.append(asyncio.create_task(watch(busy))))
        app.on_shutdown.append(lambda: tasks[0].cancel())
        return app

    serve.application = application
    try:
        serve.serve(database, port=0, log_level="error")
    finally:
        busy.sort()
        Path(file).write_text(json.dumps({"p99": busy[len(busy) * 99 // 100], "max": busy[-1]} if busy else {}))


if __name__ == "__main__":
    main(*sys.argv[1:])
