#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Load for memcached: getter.py PORT SECONDS. Eight connections, twenty gets at once on each; prints gets a second."""

import socket
import sys
import time

VALUE = b"value" * 20
ANSWER = len(b"VALUE key 0 100\r\n" + VALUE + b"\r\nEND\r\n")


def main(port, seconds):
    connections = [socket.create_connection(("127.0.0.1", port)) for _ in range(8)]
    connections[0].sendall(b"set key 0 0 100\r\n" + VALUE + b"\r\n")
    if connections[0].recv(100) != b"STORED\r\n":
        sys.exit("memcached did not store the value")
    n, start = 0, time.monotonic()
    for c in connections:
        c.sendall(b"get key\r\n" * 20)
    while time.monotonic() < start + seconds:
        for c in connections:
            left = 20 * ANSWER
            while left:
                got = len(c.recv(left))
                if not got:
                    sys.exit("memcached closed the connection")
                left -= got
            c.sendall(b"get key\r\n" * 20)
            n += 20
    print(f"gets={n / (time.monotonic() - start):.0f}")


main(int(sys.argv[1]), float(sys.argv[2]))
