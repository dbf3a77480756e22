"""The containment of end-to-end tests: no network but loopback, and failures that come through."""

from __future__ import annotations

import errno
import os
import socket
import sys

import pytest

from .containment import CONTAINED, leave_network, run_contained


def test_a_contained_body_reaches_loopback_alone() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()[:2], 5).close()
    if not os.environ.get(CONTAINED):
        pytest.skip("this system permits no network namespace here")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as outward:
        # 192.0.2.0/24 is set aside for documentation; a machine with a route would answer 0.
        assert outward.connect_ex(("192.0.2.1", 9)) == errno.ENETUNREACH


@pytest.mark.uncontained
def test_what_a_contained_body_raises_is_raised_here() -> None:
    before = os.getpid()

    def failing() -> None:
        assert os.getpid() == before, "runs in a child"

    if not hasattr(os, "fork"):
        pytest.skip("no fork on this system")
    with pytest.raises(pytest.fail.Exception, match="runs in a child"):
        run_contained(failing)
    with pytest.raises(pytest.fail.Exception, match="died"):
        run_contained(lambda: os._exit(3))
    with pytest.raises(pytest.skip.Exception, match="not today"):
        run_contained(lambda: pytest.skip("not today"))
    run_contained(lambda: None)


@pytest.mark.uncontained
def test_leaving_the_network_concerns_the_child_alone() -> None:
    if sys.platform != "linux":
        pytest.skip("network namespaces are Linux's")
    before = os.readlink("/proc/self/ns/net")

    def moves() -> None:
        inside = os.readlink("/proc/self/ns/net")
        assert leave_network() is (os.readlink("/proc/self/ns/net") != inside)

    run_contained(moves)
    assert os.readlink("/proc/self/ns/net") == before
