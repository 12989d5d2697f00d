# SPDX-License-Identifier: BSD-2-Clause
"""Rounds of work in Python: long() counts three times as far as short(), in the same loop. Each
round ends with a system call. With a second argument: "threads", in two threads; "fork", in a
child; "library", in a function that a module of Python's own calls."""
import functools
import os
import sys
import threading
import time

N = 400


def long():
    h = 0
    for i in range(3 * N):
        h = (h * 31 + i) % 1000003  # long
    return h


def short():
    h = 0
    for i in range(N):
        h = (h * 31 + i) % 1000003  # short
    return h


def round_of():
    h = long() + short()  # calls
    os.write(1, b'')
    return h


def called(a, b):
    return a + b + long()  # called


def rounds(end, how):
    while time.monotonic() < end:
        if how == 'library':
            functools.reduce(called, [1, 2])  # reduces
        round_of()


def main():
    end = time.monotonic() + float(sys.argv[1])
    how = sys.argv[2] if len(sys.argv) > 2 else ''
    if how == 'fork' and os.fork():
        os.wait()
        return
    threads = [threading.Thread(target=rounds, args=(end, how)) for _ in range(1 if how == 'threads' else 0)]
    for t in threads:
        t.start()
    rounds(end, how)
    for t in threads:
        t.join()


main()
