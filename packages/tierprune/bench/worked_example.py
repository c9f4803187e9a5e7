"""The README's worked example: a survey table from statsmodels, from CSV to answer.

    python bench/worked_example.py [FOLDER]

Fair's table of 6,366 married women (Redbook survey, 1974; R. Fair 1978, "A theory of extramarital
affairs", J. Political Economy 86), coded into categories as marriage.csv. The tiers say what came
first: background, then family and work, then how she rates the marriage, then whether there was an
affair. The question: how much would a better marriage lower the chance of an affair?
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TIERS = (
    "age,religious,education<years_married,children,occupation,husbands_occupation<rating<affair"
)
QUERY = ["--do", "rating", "--outcome", "affair"]
COMMANDS = (
    ["need", "--tiers", TIERS, *QUERY, "--format", "csv", "-o", "to_judge.csv"],
    ["check", "marriage.csv", "--tiers", TIERS, "--test", "gsq", "--format", "csv"],
    ["discover", "marriage.csv", "--tiers", TIERS, *QUERY, "--test", "gsq", "-o", "marriage.edges"],
    ["id", "marriage.edges", "--tiers", TIERS, *QUERY],
    [
        "estimate", "marriage.edges", "marriage.csv", "--tiers", TIERS, "--do", "rating=very good",
        "--versus", "rating=poor or fair", "--outcome", "affair=yes",
    ],
)  # fmt: skip


def table() -> str:
    """Give the table as CSV: 9 columns of categories."""
    import pandas as pd
    import statsmodels.api as sm

    raw = sm.datasets.fair.load_pandas().data

    def cut(name: str, edges: list[float], labels: list[str]) -> pd.Series[str]:
        return pd.cut(raw[name], [-1, *edges, 1000], labels=labels).astype(str)

    made = pd.DataFrame(
        {
            "age": cut("age", [22, 27, 32], ["to 22", "27", "32", "37 and over"]),
            "religious": cut("religious", [2, 3], ["little", "fairly", "strongly"]),
            "education": cut("educ", [12, 15], ["school", "some college", "graduate"]),
            "years_married": cut("yrs_married", [3, 9], ["to 3", "6 to 9", "over 9"]),
            "children": cut("children", [0, 2], ["none", "1 or 2", "more"]),
            "occupation": cut("occupation", [3, 4], ["to white-collar", "teacher", "managerial"]),
            "husbands_occupation": cut(
                "occupation_husb", [3, 4], ["to white-collar", "teacher", "managerial"]
            ),
            "rating": cut("rate_marriage", [3, 4], ["poor or fair", "good", "very good"]),
            "affair": cut("affairs", [0], ["no", "yes"]),
        }
    )
    return made.to_csv(index=False)


def main() -> None:
    """Write marriage.csv and run the commands, printing them and what they say."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    (folder / "marriage.csv").write_text(table())
    tool = str(Path(sys.executable).with_name("tierprune"))
    for command in COMMANDS:
        shown = " ".join(f"'{word}'" if " " in word or "<" in word else word for word in command)
        print(f"$ tierprune {shown}", flush=True)
        subprocess.run([tool, *command, *["--force"][: "-o" in command]], cwd=folder, check=False)
        if "-o" in command:
            place = folder / command[command.index("-o") + 1]
            print("".join(place.read_text().splitlines(keepends=True)[:30]), flush=True)


if __name__ == "__main__":
    main()
