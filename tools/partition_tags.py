#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the table of persist/partition.c: the hash tag of each partition.

Tag i is "p<i>" and the shortest suffix of lower-case letters that puts its cluster slot into the i-th of 48 equal
slot ranges; of several that short, the one nearest to the middle of the range."""
import itertools
import string

PARTITIONS, SLOTS = 48, 16384


def crc16(data):
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1) ^ 0x1021 if crc & 0x8000 else crc << 1
        crc &= 0xFFFF
    return crc


def tag(i):
    low, high = i * SLOTS / PARTITIONS, (i + 1) * SLOTS / PARTITIONS
    for length in itertools.count():
        found = []
        for letters in itertools.product(string.ascii_lowercase, repeat=length):
            name = f"p{i}" + "".join(letters)
            slot = crc16(name.encode()) % SLOTS
            if low <= slot < high:
                found.append((abs(slot + 0.5 - (low + high) / 2), name))
        if found:
            return min(found)[1]


if __name__ == "__main__":
    tags = [tag(i) for i in range(PARTITIONS)]
    for row in range(0, PARTITIONS, 12):
        print("\t" + " ".join(f'"{t}",' for t in tags[row:row + 12]))
