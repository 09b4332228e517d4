"""Matmul objects of a mix launch: AIVs send their calls, the AIC of their block answers them.

A call is a message in global memory. The AIC waits until there is one, does what it says and
answers those that ask for it, until all of its AIVs have ended.
"""

from collections import deque

from cubecore.frontends.cpp.matmul_wire import MatmulCall
from cubecore.isa.scalar.sync import FIRST_MESSAGE, AwaitMessage, SendMessage

_ANY = FIRST_MESSAGE


Messages = deque[tuple[int, MatmulCall | None, int]]
"""Messages of a block on their way: client, call, line; the call of a client that ends is None."""


def sent(client: int) -> list[SendMessage]:
    """Return what sends a client's message: there is one, and it is the client's."""
    return [SendMessage(on="MTE3", flag_id=_ANY), SendMessage(on="MTE3", flag_id=_of(client))]


def received_any() -> AwaitMessage:
    """Return the wait for a message of any client."""
    return AwaitMessage(flag_id=_ANY)


def received_from(client: int) -> AwaitMessage:
    """Return the wait for a message of one client."""
    return AwaitMessage(flag_id=_of(client))


def answered(client: int) -> SendMessage:
    """Return what tells a client that its call is done."""
    return SendMessage(on="FIX", flag_id=_answer(client))


def awaited(client: int) -> AwaitMessage:
    """Return a client's wait for that."""
    return AwaitMessage(flag_id=_answer(client))


def _of(client: int) -> int:
    return FIRST_MESSAGE + 1 + client


def _answer(client: int) -> int:
    return FIRST_MESSAGE + 64 + client
