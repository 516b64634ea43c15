from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scikit_posthocs as theirs
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from draws import examples
from tuplet.core.exceptions import InputError
from tuplet.evaluate import statistics as ours

# Demšar (2006), Table 6: AUC of C4.5 with tuned m and cf on 14 data sets. On "voting" he ranks two models 2
# and 3 that both print as 0.975, so a digit that the table does not show is put here; no other place could
# give his average ranks.
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
        "+m": [0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668, 0.583, 0.838, 1, 0.962, 0.666, 0.981, 0.978],
        "+cf": [
            0.771,
            0.590,
            0.968,
            0.654,
            0.886,
            0.916,
            0.609,
            0.563,
            0.866,
            1,
            0.965,
            0.614,
            0.9751,
            0.946,
        ],
        "+m+cf": [
            0.798,
            0.569,
            0.967,
            0.657,
            0.898,
            0.931,
            0.685,
            0.625,
            0.875,
            1,
            0.962,
            0.669,
            0.975,
            0.970,
        ],
    }
)

# García et al. (2010): accuracy of four classifiers on 24 data sets. Table and results as the tests of STAC
# (citiususc/stac) and StaTDS quote them.
GARCIA = pd.DataFrame(
    [
        [0.752, 0.773, 0.785, 0.795],
        [0.727, 0.748, 0.724, 0.713],
        [0.736, 0.716, 0.585, 0.638],
        [0.994, 0.861, 0.880, 0.791],
        [0.508, 0.553, 0.575, 0.515],
        [0.535, 0.536, 0.513, 0.471],
        [0.967, 0.871, 0.954, 0.532],
        [0.831, 0.807, 0.819, 0.768],
        [0.745, 0.702, 0.719, 0.705],
        [0.709, 0.572, 0.669, 0.607],
        [0.722, 0.728, 0.725, 0.732],
        [0.967, 0.947, 0.953, 0.960],
        [0.832, 0.752, 0.802, 0.691],
        [0.998, 0.992, 0.482, 0.910],
        [0.963, 0.963, 0.954, 0.926],
        [0.982, 0.953, 0.932, 0.630],
        [0.978, 0.773, 0.834, 0.849],
        [0.854, 0.787, 0.841, 0.779],
        [0.965, 0.984, 0.995, 0.947],
        [0.924, 0.887, 0.861, 0.804],
        [0.929, 0.942, 0.931, 0.921],
        [0.837, 0.643, 0.602, 0.554],
        [0.972, 0.956, 0.944, 0.922],
        [0.958, 0.959, 0.964, 0.964],
    ],
    columns=["PDFC", "NNEP", "IS-CHC", "FH-GBML"],
)


@st.composite
def score_tables(draw, min_models=3):
    """Scores with one decimal, so that there are ties; each row favours the first models a little."""
    n, k = draw(st.integers(3, 12)), draw(st.integers(min_models, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    values = rng.integers(0, draw(st.sampled_from([3, 10, 1000])), (n, k)) + rng.integers(0, 3) * np.arange(k)
    values[0] = np.arange(k)  # not all tied
    return pd.DataFrame(values / 10, columns=[f"m{j}" for j in range(k)])


# -- Friedman ----------------------------------------------------------------------------------------------


def test_average_ranks_of_demsar():
    ranks = ours.average_ranks(DEMSAR)
    assert ranks.round(3).tolist() == [3.143, 2.000, 2.893, 1.964]
    assert ranks.attrs == {"n_rows": 14, "n_left_out": 0}


def test_friedman_of_demsar_is_the_formula_without_ties():
    result = ours.friedman(DEMSAR, ties="plain")
    # Section 3.2.2: he computes with average ranks of three decimals, which moves the last digit.
    assert result.statistic == pytest.approx(9.28, abs=0.01)
    assert result.f_statistic == pytest.approx(3.69, abs=0.01)
    assert result.f_p_value < 0.05  # his critical value is 2.85
    assert ours.friedman(DEMSAR).statistic > result.statistic


def test_friedman_of_garcia():
    result = ours.friedman(GARCIA, ties="plain")
    assert result.ranks.round(3).tolist() == [1.771, 2.479, 2.479, 3.271]
    assert result.statistic == pytest.approx(16.225, abs=5e-4)
    assert result.p_value == pytest.approx(0.0010197, abs=5e-8)
    assert result.f_statistic == pytest.approx(6.691, abs=5e-4)
    assert result.f_p_value == pytest.approx(4.970e-4, abs=5e-8)


@examples(25)
@given(scores=score_tables())
def test_friedman_is_that_of_scipy(scores):
    expected = stats.friedmanchisquare(*scores.to_numpy().T)
    result = ours.friedman(scores)
    assert result.statistic == pytest.approx(expected.statistic, rel=1e-9)
    assert result.p_value == pytest.approx(expected.pvalue, rel=1e-9)


def test_friedman_without_ties_does_not_depend_on_the_formula():
    scores = pd.DataFrame(np.random.default_rng(0).random((9, 4)))
    assert ours.friedman(scores).statistic == pytest.approx(ours.friedman(scores, ties="plain").statistic)


def test_friedman_at_its_limits():
    agreed = pd.DataFrame([[1, 2, 3]] * 4)
    assert ours.friedman(agreed).statistic == 8
    assert np.isnan(ours.friedman(agreed).f_statistic)
    assert np.isnan(ours.friedman(agreed).f_p_value)
    tied = ours.friedman(pd.DataFrame(np.ones((4, 3))))
    assert (tied.statistic, tied.p_value, tied.f_statistic, tied.f_p_value) == (0, 1, 0, 1)


def test_ranks_take_infinite_scores():
    scores = pd.DataFrame([[-np.inf, -np.inf, -2.0], [-1.0, -np.inf, -3.0]])
    assert ours.average_ranks(scores).tolist() == [1.75, 2.75, 1.5]
    with pytest.raises(InputError, match="infinite"):
        ours.friedman_aligned(scores)


def test_rounding_errors_are_ties():
    scores = pd.DataFrame({"a": [0.3, 0.5], "b": [0.1 + 0.2, 0.6]})
    assert ours.average_ranks(scores).tolist() == [1.75, 1.25]


# -- aligned ranks -----------------------------------------------------------------------------------------


def slow_aligned(scores):
    """Aligned ranks and the statistic of García et al. (2010) in exact arithmetic, loop by loop."""
    rows = [[Fraction(str(value)) for value in row] for row in scores.to_numpy().tolist()]
    n, k = len(rows), len(rows[0])
    aligned = [[value - sum(row) / k for value in row] for row in rows]
    every = [value for row in aligned for value in row]
    ranks = [
        [
            sum(other > value for other in every) + Fraction(sum(other == value for other in every) + 1, 2)
            for value in row
        ]
        for row in aligned
    ]
    columns = sum(sum(row[j] for row in ranks) ** 2 for j in range(k))
    blocks = sum(sum(row) ** 2 for row in ranks)
    numerator = (k - 1) * (columns - Fraction(k * n**2, 4) * (k * n + 1) ** 2)
    statistic = numerator / (Fraction(k * n * (k * n + 1) * (2 * k * n + 1), 6) - blocks / k)
    return [float(sum(row[j] for row in ranks) / n) for j in range(k)], float(statistic)


@examples(25)
@given(scores=score_tables(min_models=2))
def test_aligned_ranks_are_those_of_exact_arithmetic(scores):
    ranks, statistic = slow_aligned(scores)
    result = ours.friedman_aligned(scores)
    assert result.ranks.tolist() == pytest.approx(ranks, rel=1e-12)
    assert result.statistic == pytest.approx(statistic, rel=1e-9, abs=1e-9)
    assert result.p_value == pytest.approx(stats.chi2.sf(statistic, scores.shape[1] - 1), rel=1e-9)


def test_aligned_ranks_of_garcia():
    # Average aligned ranks, and p values of PDFC against the others. Those quoted come from floating point,
    # where distances to the mean that are equal on paper get different ranks; hence the tolerances. They also
    # settle the variance: it is k (n k + 1) / 6, not k (n + 1) / 6. The statistic is that of STAC, 22.26;
    # StaTDS quotes 18.84, which the formula does not give.
    result = ours.friedman_aligned(GARCIA)
    assert result.statistic == pytest.approx(22.26, abs=0.01)
    assert result.ranks.tolist() == pytest.approx([29.333, 46.792, 46.979, 70.896], abs=0.05)
    against = ours.versus_control(GARCIA, "PDFC", ranks="aligned").table
    assert against.index[0] == "FH-GBML"
    assert against.loc["FH-GBML", "p_value"] == pytest.approx(2.36e-7, rel=0.01)
    assert against.loc["IS-CHC", "p_value"] == pytest.approx(0.0282, abs=5e-4)
    assert against.loc["NNEP", "p_value"] == pytest.approx(0.0299, abs=5e-4)
    assert against.loc["NNEP", "adjusted"] == pytest.approx(0.0564, abs=1e-3)


def test_a_constant_for_all_models_of_a_row_changes_no_aligned_rank():
    shifted = DEMSAR.add(np.random.default_rng(0).integers(1, 50, 14) / 7, axis=0)
    assert ours.friedman_aligned(shifted).ranks.tolist() == ours.friedman_aligned(DEMSAR).ranks.tolist()


# -- post-hoc tests ----------------------------------------------------------------------------------------


def test_nemenyi_of_demsar():
    result = ours.nemenyi(DEMSAR)
    assert result.critical_difference == pytest.approx(1.25, abs=5e-3)
    assert not result.table()["significant"].any()
    # At 0.10 the difference of C4.5 to +m+cf and to +m suffices: 1.18 and 1.14 against 1.12.
    loose = ours.nemenyi(DEMSAR, alpha=0.10)
    assert loose.critical_difference == pytest.approx(1.12, abs=5e-3)
    assert loose.table().query("significant")[["better", "worse"]].to_numpy().tolist() == [
        ["+m+cf", "C4.5"],
        ["+m", "C4.5"],
    ]


@pytest.mark.parametrize(
    ("alpha", "published"),
    [
        (0.05, [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]),
        (0.10, [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]),
    ],
)
def test_critical_values_are_those_of_demsar(alpha, published):
    for k, q in enumerate(published, start=2):
        scores = pd.DataFrame([np.arange(k)] * 6)
        found = ours.nemenyi(scores, alpha=alpha).critical_difference / np.sqrt(k * (k + 1) / 36)
        # Table 5(a) divides quantiles of three decimals by sqrt(2), so its last digit may be off by one.
        assert found == pytest.approx(q, abs=1.1e-3)


@examples(12)
@given(scores=score_tables())
def test_nemenyi_is_that_of_scikit_posthocs(scores):
    expected = theirs.posthoc_nemenyi_friedman(scores)
    pd.testing.assert_frame_equal(ours.nemenyi(scores).p_values, expected, atol=1e-9, check_names=False)


@examples(25)
@given(scores=score_tables())
def test_conover_is_that_of_scikit_posthocs(scores):
    with np.errstate(all="ignore"):  # theirs divides by zero where all rows agree
        expected = theirs.posthoc_conover_friedman(scores)
    if np.isfinite(expected.to_numpy()).all():
        found = ours.conover(scores).p_values
        pd.testing.assert_frame_equal(found, expected, rtol=1e-7, atol=1e-12, check_names=False)


def test_conover_with_holm_is_that_of_scikit_posthocs():
    expected = theirs.posthoc_conover_friedman(GARCIA, p_adjust="holm")
    pd.testing.assert_frame_equal(ours.conover(GARCIA, adjust="holm").p_values, expected, check_names=False)


def test_conover_where_all_rows_agree_or_tie():
    agreed = ours.conover(pd.DataFrame([[1, 2, 2]] * 4)).p_values.to_numpy()
    assert agreed.tolist() == [[1, 0, 0], [0, 1, 1], [0, 1, 1]]
    assert (ours.conover(pd.DataFrame(np.ones((4, 3)))).p_values == 1).all(axis=None)


def test_control_of_demsar():
    result = ours.versus_control(DEMSAR, "C4.5")
    # Section 3.2.2: z, p of the models from best to worst; the first two are rejected by Holm.
    assert result.table.index.tolist() == ["+m+cf", "+m", "+cf"]
    assert result.table["z"].tolist() == pytest.approx([2.416, 2.342, 0.512], abs=2e-3)
    assert result.table["p_value"].tolist()[:2] == pytest.approx([0.016, 0.019], abs=5e-4)
    assert (result.table["adjusted"] <= 0.05).tolist() == [True, True, False]
    dunn = ours.versus_control(DEMSAR, "C4.5", method="bonferroni-dunn", alpha=0.05)
    assert dunn.critical_difference == pytest.approx(2.394 * 0.488, abs=2e-3)  # Table 5(b)
    assert dunn.table["adjusted"].to_numpy() == pytest.approx(
        np.minimum(1, 3 * result.table["p_value"]).to_numpy()
    )


@pytest.mark.parametrize("ranks", ["plain", "aligned"])
def test_all_pairs_are_z_tests_with_the_adjustment_asked_for(ranks):
    n, k = GARCIA.shape
    test = ours.friedman if ranks == "plain" else ours.friedman_aligned
    scale = np.sqrt(k * (k + 1) / (6 * n)) if ranks == "plain" else np.sqrt(k * (n * k + 1) / 6)
    means = test(GARCIA).ranks.to_numpy()
    first, second = np.triu_indices(k, 1)
    p = 2 * stats.norm.sf(np.abs(means[first] - means[second]) / scale)
    by_holm = ours.all_pairs(GARCIA, ranks=ranks, method="holm").p_values.to_numpy()[first, second]
    by_nemenyi = ours.all_pairs(GARCIA, ranks=ranks, method="nemenyi").p_values.to_numpy()[first, second]
    assert by_holm == pytest.approx(multipletests(p, method="holm")[1])
    assert by_nemenyi == pytest.approx(multipletests(p, method="bonferroni")[1])


def test_the_variance_of_aligned_ranks_is_that_of_random_order():
    # Without differences between models, the spread of the difference of two average aligned ranks.
    rng = np.random.default_rng(0)
    n, k = 12, 4
    gaps = [
        np.diff(ours.friedman_aligned(pd.DataFrame(rng.normal(size=(n, k)))).ranks.to_numpy()[:2])[0]
        for _ in range(800)
    ]
    # Aligned ranks of a row sum to little more or less than the mean, so the truth is k / (k - 1) times the
    # formula at most; k (n + 1) / 6 would be smaller by a factor of 3.8.
    assert 0.9 < np.var(gaps) / (k * (n * k + 1) / 6) < k / (k - 1) + 0.1


# -- Holm --------------------------------------------------------------------------------------------------


@examples(12)  # theirs takes its time
@given(m=st.integers(1, 12), seed=st.integers(0, 2**20), levels=st.sampled_from([10, 10**6]))
def test_holm_is_that_of_statsmodels(m, seed, levels):
    p = np.random.default_rng(seed).integers(0, levels + 1, m) / levels
    p = p ** np.random.default_rng(seed).integers(1, 4)  # some are small
    assert ours.holm(p) == pytest.approx(multipletests(p, method="holm")[1])


def test_holm_keeps_containers_and_gaps():
    series = pd.Series([0.04, np.nan, 0.01], index=list("abc"))
    pd.testing.assert_series_equal(ours.holm(series), pd.Series([0.04, np.nan, 0.02], index=list("abc")))
    matrix = pd.DataFrame([[1, 0.01, 0.04], [0.01, 1, 0.03], [0.04, 0.03, 1]])
    expected = pd.DataFrame([[1, 0.03, 0.06], [0.03, 1, 0.06], [0.06, 0.06, 1]])
    pd.testing.assert_frame_equal(ours.holm(matrix), expected)


@pytest.mark.parametrize("p", [[[0.1, 0.2], [0.3, 0.4]], [[0.1, 0.2]], [1.5], [-0.1]])
def test_holm_refuses_what_is_no_family(p):
    with pytest.raises(InputError, match="holm"):
        ours.holm(p)


# -- what comes in, what goes out --------------------------------------------------------------------------

TESTS = {
    "friedman": ours.friedman,
    "friedman_aligned": ours.friedman_aligned,
    "nemenyi": ours.nemenyi,
    "conover": ours.conover,
    "all_pairs": ours.all_pairs,
    "versus_control": lambda scores: ours.versus_control(scores, scores.columns[0]),
}


@pytest.mark.parametrize("name", TESTS)
def test_rows_with_gaps_are_left_out_and_counted(name):
    scores = GARCIA.copy()
    scores.iloc[3, 1] = scores.iloc[5, 0] = np.nan
    result, expected = TESTS[name](scores), TESTS[name](scores.dropna())
    assert (result.n_rows, result.n_left_out) == (22, 2)
    assert result.ranks.tolist() == expected.ranks.tolist()
    assert "2 with gaps left out" in repr(result)
    assert "gaps" not in repr(expected)


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (GARCIA[["PDFC"]], "two different models"),
        (GARCIA.iloc[:1], "at least two rows"),
        (GARCIA.rename(columns={"NNEP": "PDFC"}), "same name"),
        (GARCIA.assign(NNEP="high"), "numbers"),
    ],
)
def test_unusable_scores_are_refused(name, scores, message):
    with pytest.raises(InputError, match=message):
        TESTS[name](scores)


def test_unusable_arguments_are_refused():
    with pytest.raises(InputError, match="DataFrame"):
        ours.friedman(GARCIA.to_numpy())
    with pytest.raises(InputError, match="Did you mean 'NNEP'"):
        ours.versus_control(GARCIA, "NEP")
    with pytest.raises(InputError, match="alpha"):
        ours.nemenyi(GARCIA, alpha=5)
    for call in (
        lambda: ours.friedman(GARCIA, ties="none"),
        lambda: ours.versus_control(GARCIA, "NNEP", method="nemenyi"),
        lambda: ours.all_pairs(GARCIA, ranks="best"),
        lambda: ours.conover(GARCIA, adjust="fdr"),
    ):
        with pytest.raises(InputError, match="must be one of"):
            call()


def test_pairs_as_a_table_and_a_sentence():
    result = ours.nemenyi(GARCIA)
    table = result.table()
    assert table.columns.tolist() == ["better", "worse", "advantage", "p_value", "significant"]
    assert table.iloc[0, :2].tolist() == ["PDFC", "FH-GBML"]
    assert table.loc[0, "advantage"] == pytest.approx(3.271 - 1.771, abs=1e-3)
    assert repr(result).startswith("Nemenyi: 1 of 6 pairs differ at 0.05 (PDFC > FH-GBML); critical diff")
    assert "FH-GBML is worse" in repr(ours.versus_control(GARCIA, "PDFC"))
