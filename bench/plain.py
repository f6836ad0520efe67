# SPDX-License-Identifier: MIT
"""The plain recipe of plain.c in a scripting language: plain.py PORT PROCESSES REQUESTS; prints seconds."""
import multiprocessing
import sys
import time

import redis


def check_in(client, number):
    id, dept, token = f"e{number:012}", f"d{number % 500}", str(time.monotonic_ns())
    while not client.set(f"plain:lock:{id}", token, nx=True, px=5000):
        continue
    punches = client.hget(f"plain:day:{dept}", id) or ""
    punches = f"{punches[:200]},I{time.time_ns() // 1_000_000}"
    client.hset(f"plain:day:{dept}", id, punches)
    client.delete(f"plain:lock:{id}")
    client.hset(f"plain:emps:{dept}", id, f"{dept}|{punches}")
    client.publish("plain:notices", f'{{"employee":"{id}"}}')


def work(port, numbers, ready):
    client = redis.Redis(port=port, decode_responses=True)
    client.ping()
    ready.wait()
    for number in numbers:
        check_in(client, number)


def main():
    port, processes, requests = (int(word) for word in sys.argv[1:4])
    ready = multiprocessing.Barrier(processes + 1)
    children = [multiprocessing.Process(target=work, args=(port, range(i, requests, processes), ready))
                for i in range(processes)]
    for child in children:
        child.start()
    ready.wait()
    begun = time.monotonic()
    for child in children:
        child.join()
    print(time.monotonic() - begun)
    return any(child.exitcode for child in children)


if __name__ == "__main__":
    sys.exit(main())
