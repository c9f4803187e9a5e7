import pytest

from seesaw.published import RAMP_RUNS, SEESAW_RUNS, reproduce


def test_all_21_published_runs_are_matched_exactly() -> None:
    results = reproduce()
    assert len(results) == 21
    for row in results:
        assert row.verdict == "yes", row
        assert row.steps == row.steps_published
        assert row.cosine_steps == row.cosine_steps_published
        if row.tokens_published is not None:
            assert row.tokens == row.tokens_published


def test_the_table_is_that_of_the_paper() -> None:
    assert [run.steps for run in SEESAW_RUNS] == [
        15524, 7756, 3877, 31046, 15511, 7752, 31021, 15502, 7751, 1939, 970, 486, 244,
    ]  # fmt: skip
    assert [run.steps for run in RAMP_RUNS] == [10245, 9049, 8398, 8017, 5123, 4525, 4199, 4009]
    assert sum(run.past_cbs for run in SEESAW_RUNS) == 4
    # Past the critical batch size Seesaw loses, as published.
    assert all(run.loss > run.cosine_loss for run in SEESAW_RUNS if run.past_cbs)


def test_the_saving_is_the_published_38_percent() -> None:
    for row in reproduce()[:13]:
        assert row.saving == pytest.approx(0.384, abs=0.004)


def test_a_wrong_figure_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    import seesaw.published as published

    wrong = (
        dataclasses.replace(SEESAW_RUNS[0], steps=15525),
        dataclasses.replace(SEESAW_RUNS[1], end_tokens=3_300_596_737),
        dataclasses.replace(SEESAW_RUNS[2], cosine_steps=6296),
        SEESAW_RUNS[3],
    )
    monkeypatch.setattr(published, "SEESAW_RUNS", wrong)
    assert [row.verdict for row in reproduce()[:4]] == ["no", "no", "no", "yes"]
