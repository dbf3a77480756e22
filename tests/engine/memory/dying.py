"""Running an action in a process that is killed at a chosen step of its work on files."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

STEPS = ("open", "write", "fsync", "close", "replace", "rename", "link", "unlink", "mkdir")
LIMIT = 400


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _watch(step: int) -> None:
    """Kill this process before the `step`-th call; a write gets half of its bytes out first."""
    seen = 0

    def watched(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            nonlocal seen
            seen += 1
            if seen == step:
                if name == "write":
                    real(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                _die()
            return real(*arguments, **more)

        return call

    for name in STEPS:
        setattr(os, name, watched(name, getattr(os, name)))


def killed_at_each_step(action: Callable[[], object]) -> Iterator[int]:
    """Yield after each run of an action that was killed, one step later each time, until one finishes.

    Raises AssertionError where the action fails of itself or never finishes.
    """
    for step in range(1, LIMIT):
        child = os.fork()
        if child == 0:
            try:
                _watch(step)
                action()
            except BaseException:
                os._exit(3)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0, f"the action failed at step {step}"
            assert step > 3, "no step was watched"
            return
        assert os.WTERMSIG(status) == signal.SIGKILL
        yield step
    raise AssertionError("the action never finished")
