"""A comparison as tests, pictures and pages: thin forms of frames, so they only have to say the same."""

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

from tuplet.core.exceptions import InputError
from tuplet.evaluate import Comparison, statistics

MODELS, SETS = ("chain", "forest", "prior"), ("emotions", "flags", "scene", "<yeast>")


@pytest.fixture
def result():
    rng = np.random.default_rng(0)
    lines = [
        {
            "dataset": d,
            "model": m,
            "fold": f,
            "status": "ok",
            "reason": "",
            "n_folds": 3,
            "n_train": 9,
            "n_test": 3,
            "warnings": (),
        }
        | {"exact_match": rng.random() + (m == "chain"), "fit_seconds": 1.0, "n_floored": 1}
        for d in SETS
        for f in range(3)
        for m in MODELS
    ]
    for line in lines:
        line |= dict.fromkeys(
            ("fit_cpu_seconds", "predict_seconds", "predict_cpu_seconds", "peak_memory_mb"), 1.0
        )
    bins = pd.DataFrame(
        {"dataset": "flags", "model": MODELS, "fold": 0, "kind": "marginals", "bin": 3}
        | {"lower": 0.15, "upper": 0.2, "mean_predicted": 0.17, "observed": 0.1, "count": 30.0}
    )
    return Comparison(pd.DataFrame(lines), ["exact_match"], calibration=bins)


@pytest.fixture
def gappy(result):
    runs = result.runs.copy()
    gone = (runs["model"] == "forest") & (runs["dataset"] == "scene")
    runs.loc[gone, ["status", "reason", "exact_match"]] = ["over time", "stopped after 3 s", np.nan]
    return Comparison(runs, result.scores, calibration=result.calibration)


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def test_tests_are_those_of_the_table(result):
    table, tests = result.table("exact_match"), result.tests
    pd.testing.assert_series_equal(tests.ranks("exact_match"), statistics.average_ranks(table))
    assert repr(tests.friedman("exact_match")) == repr(statistics.friedman(table))
    assert repr(tests.friedman("exact_match", aligned=True)) == repr(statistics.friedman_aligned(table))
    assert repr(tests.nemenyi("exact_match")) == repr(statistics.nemenyi(table))
    assert repr(tests.conover("exact_match", adjust="holm")) == repr(statistics.conover(table, adjust="holm"))
    assert repr(tests.versus("exact_match", "prior")) == repr(statistics.versus_control(table, "prior"))
    pair = ("chain", "prior")
    assert repr(tests.wilcoxon("exact_match", *pair)) == repr(statistics.wilcoxon(table, *pair))
    assert repr(tests.bayesian("exact_match", *pair)) == repr(statistics.bayesian_signed_rank(table, *pair))
    folds = result.folds("exact_match")
    assert repr(tests.paired_t("exact_match")) == repr(statistics.paired_t(folds))
    # Three folds that test a quarter of the rows each are no whole cross-validation.
    corrected = statistics.paired_t(folds, correction="nadeau-bengio", test_share=0.25)
    ours = tests.paired_t("exact_match", correction="nadeau-bengio")
    pd.testing.assert_frame_equal(ours.table, corrected.table)


def test_a_model_with_gaps_does_not_keep_the_others_from_being_ranked(result):
    runs = result.runs.copy()
    runs.loc[runs["model"] == "forest", "exact_match"] = np.nan
    gappy = Comparison(runs, result.scores)
    assert gappy.tests.without("exact_match") == ["forest"]
    assert list(gappy.tests.ranks("exact_match").index) == ["chain", "prior"]
    assert "average rank" in gappy.to_markdown("exact_match")
    with pytest.raises(InputError, match="found 1 data sets with scores of 2 models"):
        gappy.select(datasets=["flags"]).tests.friedman("exact_match")


def test_a_data_set_without_scores_does_not_keep_the_others_from_being_ranked(result):
    runs = result.runs.copy()
    runs.loc[runs["model"] == "forest", "exact_match"] = np.nan
    runs.loc[runs["dataset"] == "scene", "exact_match"] = np.nan
    gappy = Comparison(runs, result.scores)
    assert gappy.tests.without("exact_match") == ["forest"]
    assert gappy.tests.ranks("exact_match").attrs["n_rows"] == 3
    for text in (gappy.to_markdown, gappy.to_latex, gappy.to_text):
        assert "average rank (3 of 4)" in text("exact_match")


def test_a_control_without_scores_is_told_where(gappy):
    assert gappy.tests.without("exact_match") == []
    runs = gappy.runs.copy()
    extra = [runs.assign(model=f"{model} {k}") for k in range(4) for model in ("a", "b")]
    for frame in extra:
        frame["exact_match"] = 0.5
    many = Comparison(
        pd.concat([runs, *extra]).drop_duplicates(["dataset", "model", "fold"]), ["exact_match"]
    )
    assert many.tests.without("exact_match") == ["forest"]
    with pytest.raises(InputError, match=r"'forest' has no scores on scene; select\(datasets"):
        many.tests.versus("exact_match", "forest")


def test_of_costs_less_is_better(result):
    seconds = {"chain": 1.0, "forest": 2.0, "prior": 3.0}
    runs = result.runs.assign(fit_seconds=result.runs["model"].map(seconds))
    costs = Comparison(runs, result.scores)
    assert costs.tests.ranks("fit_seconds").to_dict() == seconds
    assert "**1.000" in costs.to_markdown("fit_seconds")
    assert "lower is better" in costs.to_html(scores=["fit_seconds"])
    assert costs.tests.paired_t("fit_seconds").counts.loc[("chain", "prior"), "win"] == 4
    assert "chain better: 4" in costs.plot.differences("fit_seconds", "chain", "prior").texts[
        -1
    ].get_text() + (costs.plot.differences("fit_seconds", "chain", "prior").texts[-2].get_text())


def test_every_picture_is_drawn(result):
    plot = result.plot
    axes = [
        plot.critical_differences("exact_match", title="ranks"),
        plot.pairs("exact_match", "chain", "prior"),
        plot.differences("exact_match", "chain", "prior"),
        plot.boxes("exact_match"),
        plot.calibration(models=["chain", "prior"]),
    ]
    assert all(ax.has_data() or ax.texts for ax in axes)


def test_printed_forms_hold_means_ranks_and_reasons(gappy):
    for text in (
        gappy.to_markdown("exact_match"),
        gappy.to_latex("exact_match"),
        gappy.to_text("exact_match"),
    ):
        assert f"{gappy.table('exact_match').loc['flags', 'chain']:.3f}" in text
        assert "average rank" in text
        assert "stopped after 3 s" in text
    assert "3 models, 4 data sets, 33 fits" in repr(gappy)
    assert "3 fits are missing" in repr(gappy)


def test_a_page_with_enough_models_has_ranks(result):
    page = result.to_html(scores="exact_match")
    assert page.count("<svg") == 3
    assert "Friedman" in page


def test_the_page_is_whole_and_escaped(gappy, tmp_path):
    path = tmp_path / "page.html"
    page = gappy.to_html(path, title="Ours & theirs")
    assert path.read_text(encoding="utf-8") == page
    assert "Ours &amp; theirs" in page
    assert "<yeast>" not in page
    assert page.count("<svg") == 3  # ranks, boxes, calibration of marginals
    assert "1 with gaps left out" in page
    assert "stopped after 3 s" in page
    assert not plt.get_fignums()


def test_a_score_that_is_infinite_everywhere_has_a_page(result):
    runs = result.runs.assign(exact_match=-np.inf)
    assert "Exact match" in Comparison(runs, ["exact_match"]).to_html()


def test_a_page_of_one_fold_and_two_models_leaves_out_what_needs_more(result):
    runs = result.runs.query("fold == 0")
    small = Comparison(runs, ["exact_match"]).select(models=["chain", "prior"], datasets=["flags"])
    page = small.to_html()
    assert "<svg" not in page
    assert "±" not in small.to_markdown("exact_match")


def test_calibration_is_asked_for_where_there_is_some(result):
    bare = Comparison(result.runs, result.scores)
    with pytest.raises(InputError, match="without calibration"):
        bare.plot.calibration()
    with pytest.raises(InputError, match="kind must be"):
        result.calibration_table("joint", model="chain")
    with pytest.raises(InputError, match="n_bins must divide 20"):
        result.calibration_table(model="chain", n_bins=7)
