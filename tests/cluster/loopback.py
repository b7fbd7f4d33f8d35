"""Bring the loopback interface up, and then become the command that is given.

For a network namespace of one's own, which has nothing but a loopback interface that is down.
"""

import fcntl
import os
import socket
import struct
import sys

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def bring_up(name: bytes = b"lo") -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        given = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack("16sH14x", name, 0))
        flags = struct.unpack("16sH14x", given)[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", name, flags | IFF_UP))


if __name__ == "__main__":
    bring_up()
    os.execvp(sys.argv[1], sys.argv[1:])
