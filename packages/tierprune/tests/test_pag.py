"""PAGs: marks by pair and their spelling."""

import numpy as np
import pytest

from tierprune.pag import PAG, Mark, arrow

TAIL, HEAD, CIRCLE = Mark.TAIL, Mark.ARROW, Mark.CIRCLE


@pytest.mark.parametrize(
    ("left", "right", "text"),
    [
        (TAIL, HEAD, "-->"),
        (HEAD, TAIL, "<--"),
        (HEAD, HEAD, "<->"),
        (CIRCLE, HEAD, "o->"),
        (HEAD, CIRCLE, "<-o"),
        (CIRCLE, CIRCLE, "o-o"),
        (TAIL, TAIL, "---"),
        (TAIL, CIRCLE, "--o"),
        (CIRCLE, TAIL, "o--"),
    ],
)
def test_arrow(left: Mark, right: Mark, text: str) -> None:
    assert arrow(left, right) == text


def test_marks_stand_at_their_ends() -> None:
    graph = PAG.from_edges("abc", [("a", "b", CIRCLE, HEAD), ("c", "b", TAIL, HEAD)])
    assert graph.marks.tolist() == [
        [0, HEAD, 0],
        [CIRCLE, 0, TAIL],
        [0, HEAD, 0],
    ]
    assert list(graph.edges()) == [(0, 1, CIRCLE, HEAD), (1, 2, HEAD, TAIL)]
    assert graph == PAG("abc", np.array(graph.marks))
    assert graph != PAG("abc")


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([("a", "a", TAIL, HEAD)], "a to itself"),
        ([("a", "b", TAIL, HEAD), ("b", "a", TAIL, HEAD)], "two edges between b and a"),
    ],
)
def test_what_is_no_pag_is_refused(edges: list[tuple[str, str, Mark, Mark]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PAG.from_edges("ab", edges)
