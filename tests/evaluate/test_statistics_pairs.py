import baycomp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from draws import examples
from tuplet.core.exceptions import InputError
from tuplet.evaluate import statistics as ours

# Demšar (2006), Table 2.
DEMSAR = pd.DataFrame(
    {
        "C4.5": [
            0.763,
            0.599,
            0.954,
            0.628,
            0.882,
            0.936,
            0.661,
            0.583,
            0.775,
            1,
            0.940,
            0.619,
            0.972,
            0.957,
        ],
        "C4.5+m": [
            0.768,
            0.591,
            0.971,
            0.661,
            0.888,
            0.931,
            0.668,
            0.583,
            0.838,
            1,
            0.962,
            0.666,
            0.981,
            0.978,
        ],
    }
)


# -- Wilcoxon ----------------------------------------------------------------------------------------------


def test_wilcoxon_of_demsar():
    result = ours.wilcoxon(DEMSAR, "C4.5+m", "C4.5")
    assert (result.r_plus, result.r_minus, result.statistic) == (93, 12, 12)
    assert result.z == pytest.approx((93 - 14 * 15 / 4) / np.sqrt(14 * 15 * 29 / 24))
    assert result.p_value < 0.05  # the critical value for 14 data sets is 21
    back = ours.wilcoxon(DEMSAR, "C4.5", "C4.5+m")
    assert (back.r_plus, back.z, back.p_value) == (12, -result.z, result.p_value)


@examples(25)
@given(
    n=st.sampled_from([2, 3, 5, 6, 14, 20, 50, 51, 70]),  # their exact test with ties is slow
    seed=st.integers(0, 2**20),
    levels=st.sampled_from([3, 10**6]),
    zeros=st.sampled_from(["split", "drop"]),
)
def test_wilcoxon_is_that_of_scipy(n, seed, levels, zeros):
    a, b = np.random.default_rng(seed).integers(0, levels, (2, n))
    result = ours.wilcoxon(pd.DataFrame({"a": a, "b": b}), "a", "b", zeros=zeros)
    difference = a - b if zeros == "split" else (a - b)[a != b]
    if not difference.any():
        assert (result.z, result.p_value) == (0, 1)
        return
    expected = stats.wilcoxon(difference, zero_method="zsplit")
    assert result.statistic == expected.statistic
    assert result.p_value == pytest.approx(expected.pvalue)
    if zeros == "drop":
        assert result.statistic == stats.wilcoxon(a - b, zero_method="wilcox").statistic


def test_differences_that_only_rounding_makes_are_none():
    scores = pd.DataFrame({"a": [0.3, 0.5, 0.6, 0.9], "b": [0.1 + 0.2, 0.4, 0.7, 0.6]})
    result = ours.wilcoxon(scores, "a", "b")
    assert (result.r_plus, result.r_minus) == (0.5 + 2.5 + 4, 0.5 + 2.5)


def test_wilcoxon_looks_at_the_gaps_of_its_two_models_only():
    scores = DEMSAR.assign(other=np.nan)
    scores.loc[2, "C4.5"] = np.nan
    result = ours.wilcoxon(scores, "C4.5", "C4.5+m")
    assert (result.n_rows, result.n_left_out) == (13, 1)
    assert "1 with gaps left out" in repr(result)


# -- paired t tests ----------------------------------------------------------------------------------------


@examples(25)
@given(n=st.integers(2, 12), seed=st.integers(0, 2**20))
def test_paired_t_is_that_of_scipy(n, seed):
    scores = pd.DataFrame(np.random.default_rng(seed).normal(size=(n, 3)), columns=list("abc"))
    table = ours.paired_t({"set": scores}).table.set_index(["a", "b"])
    for a, b in ("ab", "ac", "bc"):
        expected = stats.ttest_rel(scores[a], scores[b])
        assert table.loc[(a, b), "t"] == pytest.approx(expected.statistic)
        assert table.loc[(a, b), "p_value"] == pytest.approx(expected.pvalue)


def test_wins_ties_and_losses():
    rng = np.random.default_rng(0)
    noise = rng.normal(scale=0.01, size=(10, 2))
    folds = {
        name: pd.DataFrame(noise + np.array([gap, 0]), columns=["a", "b"])
        for name, gap in [("one", 1), ("two", 1), ("three", 0), ("four", -1)]
    }
    result = ours.paired_t(folds)
    assert result.table["outcome"].tolist() == ["win", "win", "tie", "loss"]
    assert result.count("a", "b") == (2, 1, 1)
    assert result.count("b", "a") == (1, 1, 2)
    assert repr(result) == "Paired t tests, uncorrected, at 0.05, win/tie/loss over 4 data sets: a - b 2/1/1"
    with pytest.raises(InputError, match="not compared"):
        result.count("a", "c")


def test_nadeau_and_bengio_widen_the_variance():
    scores = pd.DataFrame(np.random.default_rng(0).normal([0.5, 0], size=(10, 2)), columns=["a", "b"])
    difference = scores["a"] - scores["b"]
    line = ours.paired_t({"set": scores}, correction="nadeau-bengio").table.iloc[0]
    t = difference.mean() / np.sqrt((1 / 10 + 1 / 9) * difference.var(ddof=1))  # tested 1, learned from 9
    assert line["t"] == pytest.approx(t)
    assert line["p_value"] == pytest.approx(2 * stats.t.sf(abs(t), 9))
    halves = ours.paired_t({"set": scores}, correction="nadeau-bengio", test_share=0.5).table.iloc[0]
    assert halves["t"] == pytest.approx(difference.mean() / np.sqrt((1 / 10 + 1) * difference.var(ddof=1)))


def test_differences_without_variance():
    base = np.array([0.1, 0.3, 0.7, 0.9])
    folds = {
        "same": pd.DataFrame({"a": base, "b": base}),
        "noise": pd.DataFrame({"a": base, "b": (base + 0.2) - 0.2}),
        "ahead": pd.DataFrame({"a": base + 0.1, "b": base}),
        "behind": pd.DataFrame({"a": base - 0.1, "b": base}),
    }
    result = ours.paired_t(folds)
    assert result.table["t"].tolist() == [0, 0, np.inf, -np.inf]
    assert result.table["p_value"].tolist() == [1, 1, 0, 0]
    assert result.table["outcome"].tolist() == ["tie", "tie", "win", "loss"]
    assert result.table["constant"].all()
    assert "4 tests without variance" in repr(result)


def test_folds_and_models_that_are_missing():
    rng = np.random.default_rng(0)
    whole = pd.DataFrame(rng.normal(size=(5, 3)), columns=list("abc"))
    holes = whole.copy()
    holes.loc[0, "a"] = np.nan
    result = ours.paired_t({"whole": whole, "holes": holes, "two": whole[["a", "b"]]})
    lines = result.table.set_index(["dataset", "a", "b"])
    assert lines.loc[("holes", "a", "b"), "n_folds"] == 4
    assert lines.loc[("holes", "b", "c"), "n_folds"] == 5  # the gap of a is no matter of theirs
    assert lines.loc[("two", "a", "c"), "n_folds"] == 0
    assert pd.isna(lines.loc[("two", "a", "c"), "outcome"])
    assert result.counts["untested"].tolist() == [0, 1, 1]
    assert "2 tests left out" in repr(result)


@pytest.mark.parametrize(
    ("folds", "arguments", "message"),
    [
        ({}, {}, "must map"),
        ({"set": [[1, 2]]}, {}, "must map"),
        ({"set": pd.DataFrame({"a": [1, 2]})}, {}, "two different models"),
        ({"set": pd.DataFrame([[1, 2]], columns=["a", "a"]).assign(b=1)}, {}, "same name"),
        ({"set": pd.DataFrame({"a": [1, np.inf], "b": [1, 2]})}, {}, "infinite"),
        ({"set": DEMSAR}, {"alpha": 0}, "alpha"),
        ({"set": DEMSAR}, {"correction": "holm"}, "must be one of"),
        ({"set": DEMSAR}, {"test_share": 1.0}, "test_share"),
    ],
)
def test_unusable_folds_are_refused(folds, arguments, message):
    with pytest.raises(InputError, match=message):
        ours.paired_t(folds, **arguments)


# -- Bayesian signed ranks ---------------------------------------------------------------------------------


def frame(differences):
    return pd.DataFrame({"a": 1.0 + np.asarray(differences), "b": 1.0})


@pytest.mark.parametrize("rope", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("shift", [0.0, 0.15, -0.3])
def test_bayesian_signed_ranks_are_those_of_baycomp(rope, shift):
    scores = frame(np.random.default_rng(3).normal(shift, 0.4, 12))
    result = ours.bayesian_signed_rank(scores, "a", "b", rope=rope, random_state=0)
    n_theirs = 10_000
    expected = baycomp.SignedRankTest.probs(
        scores["a"].to_numpy(), scores["b"].to_numpy(), rope, nsamples=n_theirs, random_state=0
    )
    expected = expected if rope else (expected[0], 0.0, expected[1])
    for p, q in zip(result.probabilities, expected, strict=True):
        error = np.sqrt(p * (1 - p) * (1 / result.n_samples + 1 / n_theirs))
        assert abs(p - q) <= 4 * error + 1e-4
    assert result.standard_error == max(np.sqrt(p * (1 - p) / 50_000) for p in result.probabilities)
    assert sum(result.probabilities) == pytest.approx(1)


def test_two_differences_by_integration():
    # Differences 1 and -3 and a prior of weight 1/2 at zero: a has the larger share if
    # (w_0 + w_1)^2 - w_0^2 / 2 > 1/2, where w_0 is Beta(1/2, 2) and w_1 / (1 - w_0) uniform.
    def integrand(w):
        edge = max(0.0, np.sqrt(0.5 + 0.5 * w**2) - w)
        return stats.beta.pdf(w, 0.5, 2) * max(0.0, 1 - edge / (1 - w))

    exact = integrate.quad(integrand, 0, 1, points=[0.01, 0.5], limit=200)[0]
    result = ours.bayesian_signed_rank(frame([1.0, -3.0]), "a", "b", n_samples=200_000)
    assert result.p_a == pytest.approx(exact, abs=4 * result.standard_error)


def test_what_is_certain():
    far = frame([2.0, 3.0, 2.5, 4.0])
    assert ours.bayesian_signed_rank(far, "a", "b").probabilities == (1, 0, 0)
    assert ours.bayesian_signed_rank(far, "b", "a").probabilities == (0, 0, 1)
    small = frame([0.01, -0.02, 0.03])
    assert ours.bayesian_signed_rank(small, "a", "b", rope=0.1).probabilities == (0, 1, 0)
    same = frame([0.0, 0.0, 0.0])
    assert ours.bayesian_signed_rank(same, "a", "b").probabilities == (0.5, 0, 0.5)
    assert ours.bayesian_signed_rank(same, "a", "b", rope=0.01).probabilities == (0, 1, 0)


def test_symmetric_differences_favour_nobody():
    result = ours.bayesian_signed_rank(frame([0.1, -0.1, 0.3, -0.3, 0.7, -0.7]), "a", "b")
    assert result.p_a == pytest.approx(0.5, abs=4 * result.standard_error)
    assert result.p_b == pytest.approx(1 - result.p_a)


def test_the_prior_pulls_to_its_place():
    scores = frame([0.1, -0.1, 0.2, -0.25])
    p = {
        place: ours.bayesian_signed_rank(scores, "a", "b", prior_place=place, prior_strength=2).p_a
        for place in ("a", "equal", "b")
    }
    assert p["a"] > p["equal"] + 0.1 > p["b"] + 0.2


def test_the_same_seed_gives_the_same_answer():
    scores = frame(np.random.default_rng(0).normal(size=9))
    first, second = (ours.bayesian_signed_rank(scores, "a", "b", random_state=5) for _ in range(2))
    assert first.probabilities == second.probabilities
    assert "9 rows" in repr(first)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rope": -1}, "rope"),
        ({"n_samples": 0}, "n_samples"),
        ({"prior_strength": 0}, "prior_strength"),
        ({"prior_place": "rope"}, "must be one of"),
    ],
)
def test_unusable_settings_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        ours.bayesian_signed_rank(DEMSAR, "C4.5", "C4.5+m", **arguments)


def test_a_model_is_not_compared_with_itself():
    for test in (ours.wilcoxon, ours.bayesian_signed_rank):
        with pytest.raises(InputError, match="two different models"):
            test(DEMSAR, "C4.5", "C4.5")
