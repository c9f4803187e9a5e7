"""m-separation in an ADMG: which independences a graph asserts."""

from __future__ import annotations

from tierprune.admg import ADMG
from tierprune.bits import bits


def m_connected(graph: ADMG, start: int, given: int) -> int:
    """Give all variables that some path from `start` reaches when `given` is held fixed.

    A path is open where each collider on it is an ancestor of `given` and no other inner variable
    is in `given` (Richardson 2003). `start` and `given` are disjoint sets; neither is in the
    answer. A set is m-separated from `start` by `given` where it misses the answer.
    """
    opening = graph.ancestors(given)  # where a collider lets a path through
    # Reached with an arrowhead at the variable, and with a tail at it: what goes on differs.
    head = tail = 0
    for i in bits(start):
        head |= graph.children[i] | graph.spouses[i]
        tail |= graph.parents[i]
    new_head, new_tail = head, tail
    while new_head or new_tail:
        more_head = more_tail = 0
        for i in bits(new_head & ~given):
            more_head |= graph.children[i]
        for i in bits(new_head & opening):
            more_head |= graph.spouses[i]
            more_tail |= graph.parents[i]
        for i in bits(new_tail & ~given):
            more_head |= graph.children[i] | graph.spouses[i]
            more_tail |= graph.parents[i]
        new_head, new_tail = more_head & ~head, more_tail & ~tail
        head |= new_head
        tail |= new_tail
    return (head | tail) & ~start & ~given


def m_separated(graph: ADMG, a: int, b: int, given: int) -> bool:
    """Say whether no member of `a` has an open path to one of `b` given `given` (disjoint sets)."""
    return not m_connected(graph, a, given) & b
