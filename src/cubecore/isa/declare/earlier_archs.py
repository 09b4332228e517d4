"""The AI Cores before arch 2201, with the meaning that TIK gives its instructions.

Their kits are programmed in TIK, whose public pages name the chips that each call exists on
("where a chip is not named, the call exists from 310 on"). A declaration says since which of them
its instruction exists. What a call means there is taken to be what its instruction means on 2201,
where the pages say no other.
"""

EARLIER_ARCHS = ("m100", "1001", "2002")
"""The earlier architectures: an instruction that one has, the later ones have too."""


def from_on(since: str) -> tuple[str, ...]:
    """Return the earlier architectures from one on; of none, none.

    Examples
    --------
    >>> from_on("1001"), from_on("")
    (('1001', '2002'), ())
    """
    return EARLIER_ARCHS[EARLIER_ARCHS.index(since) :] if since else ()
