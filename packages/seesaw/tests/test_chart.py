"""The text chart puts values where their axes say."""

import numpy as np
import pytest

from seesaw.chart import Series, text_chart


def test_a_ramp_is_a_diagonal() -> None:
    x = np.arange(0, 10.01, 0.25)
    y = np.minimum(x + 0.5, 10)
    lines = text_chart([Series("ramp", "*", x, y)], title="y", x_label="s", width=14, height=11)
    assert lines == [
        "y   * ramp",
        " 10|         *",
        "   |        *",
        "   |       *",
        "   |      *",
        "   |     *",
        "  5|    *",
        "   |   *",
        "   |  *",
        "   | *",
        "   |*",
        "  0|",
        "   +----------",
        "    0     10 s",
    ]  # fmt: skip


def test_a_jump_is_joined_and_the_later_curve_lies_on_top() -> None:
    flat = Series("a", "a", [0, 4], [4, 4])
    jump = Series("b", "b", [0, 2, 4], [4, 1, 1])
    lines = text_chart([flat, jump], title="t", x_label="k", x_unit=2, width=7, height=5)
    assert lines[1:6] == [" 4|bbaa", "  |  b", " 2|  b", "  |  bb", " 0|"]
    assert lines[7].endswith("2 k")


@pytest.mark.parametrize("width", [40, 80])
def test_no_line_is_wider_than_asked(width: int) -> None:
    x = np.arange(100)
    lines = text_chart([Series("s", "*", x, np.cos(x / 80))], title="lr", x_label="G", width=width)
    assert max(map(len, lines)) <= width
