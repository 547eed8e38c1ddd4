"""How long `/health` takes, asked every few milliseconds from another process until standard input ends."""

import http.client
import json
import sys
import threading
import time

PAUSE = 0.01  # seconds


def main(port):
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    latencies = []
    while not over.is_set():
        began = time.perf_counter()
        try:
            connection.request("GET", "/health")
            connection.getresponse().read()
        except (http.client.HTTPException, OSError):
            connection.close()
            latencies.append(60.0)
            continue
        latencies.append(time.perf_counter() - began)
        time.sleep(PAUSE)
    latencies.sort()
    print(
        json.dumps(
            {
                "asked": len(latencies),
                "p50": 1000 * latencies[len(latencies) // 2],
                "p99": 1000 * latencies[len(latencies) * 99 // 100],
                "max": 1000 * latencies[-1],
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]))
