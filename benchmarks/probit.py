"""Multivariate probit with regression trees: the simulation of the paper and its tables, by our own run.

Data as in its section 4: three labels, 500 training and 1,000 test rows, true correlations .7, .8 and .9,
signals A sin(pi x1 x2) - B, A sin(pi x1 x2) + B and A x3, B = .1. Weak: A = .3; strong: A = 1; the paper does
not say what moderate is, here A = .6. Replicates have the seeds 0, 1, 2 ... The six models of its Figure 1:
multivariate (M) and univariate (U), with sums of trees (B), linear in the features (Lin), or linear in the
true predictors (Tru), all by one sampler; "true" is the distribution that the data were drawn from. MB runs
with default settings, the others with two chains instead of four, since theirs mix well. KL is the divergence
of the predicted from the true distribution of label combinations, a mean over test rows. Labels are
predicted by the most probable combination. The defaults (20 trees, selection of features) were chosen by
KL on the same simulation, with the seeds 100 to 103. The table of decisions asks what stands between the
forest's and the true distribution's subset accuracy: settings do not, rows do.

The paper's own figures stand beside ours. Its real data are not public; the shape of its Table 3 is filled
with emotions and flags, ten random splits of 80 % training and 20 % test rows, two chains.

    TUPLET_DATA=folder/of/sets python benchmarks/run.py probit

By itself, `python benchmarks/probit.py priors real` runs some parts, and `--cached` prints what is known
already. Each fit is kept in benchmarks/cache/probit; who changes the models deletes that folder.
"""

from __future__ import annotations

import json
import re
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from arviz_stats.base.array import array_stats
from scipy import stats
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ShuffleSplit

from benchmark_sets import load_benchmark
from tuplet.core.exceptions import TupletWarning
from tuplet.joint import JointDistribution, Probit
from tuplet.joint.base import all_outcomes
from tuplet.metrics import exact_match, hamming_score, macro_f1, macro_precision
from tuplet.models.probit import ProbitClassifier, ProbitForestClassifier
from tuplet.models.probit.sampling.correlation import Hamiltonian, Metropolis

CACHE = Path(__file__).parent / "cache" / "probit"
SIGNALS = {"weak": 0.3, "moderate": 0.6, "strong": 1.0}
REPLICATES = {"weak": 20, "strong": 20, "moderate": 20}
NOISE_REPLICATES, PRIOR_REPLICATES, SPLITS = 3, 1, 10
DECISION_SEEDS = range(100, 103)
SHIFT = 0.1
TRUE = np.array([[1.0, 0.7, 0.8], [0.7, 1.0, 0.9], [0.8, 0.9, 1.0]])
PAIRS = np.triu_indices(3, 1)
OUTCOMES = all_outcomes((2, 2, 2))
SCORES = {"subset accuracy": exact_match, "macro F1": macro_f1, "macro precision": macro_precision}
PAPER_CORRELATIONS = {"weak": (0.63, 0.76, 0.82), "strong": (0.35, 0.46, 0.52)}
PAPER_KL = {
    ("weak", "MB"): 0.0584,
    ("weak", "UB"): 0.4852,
    ("strong", "MB"): 0.1010,
    ("strong", "UB"): 0.4075,
}
TWO = {"n_chains": 2}


def true_predictors(X: np.ndarray) -> np.ndarray:
    """Return the functions of the features that the signals are linear in."""
    return np.column_stack([np.sin(np.pi * X[:, 0] * X[:, 1]), X[:, 2]])


MODELS: dict[str, BaseEstimator] = {
    "MB": ProbitForestClassifier(),
    "MLin": ProbitClassifier(**TWO),
    "MTru": ProbitClassifier(true_predictors, **TWO),
    "UB": ProbitForestClassifier(correlation="identity", **TWO),
    "ULin": ProbitClassifier(correlation="identity", **TWO),
    "UTru": ProbitClassifier(true_predictors, correlation="identity", **TWO),
}
VARIANTS: dict[str, dict[str, Any]] = {
    "default (two chains)": {},
    "shrinkage r = 2 (the paper's)": {"shrinkage": 2.0},
    "shrinkage r = 4": {"shrinkage": 4.0},
    "50 trees": {"n_trees": 50},
    "200 trees": {"n_trees": 200},
    "uniform split probabilities": {"select_features": False},
    "inverse-Wishart prior of R": {"prior": "inverse-wishart"},
    "LKJ(2) prior of R": {"eta": 2.0},
    "the paper's step for R": {"correlation": "metropolis"},
    "all of the paper: r = 2, 200 trees, uniform splits, inverse-Wishart, its step": {
        "select_features": False,
        "shrinkage": 2.0,
        "n_trees": 200,
        "prior": "inverse-wishart",
        "correlation": "metropolis",
    },
}


# -- keeping results --------------------------------------------------------------------------------------


def kept(key: str, compute: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """Return a result from disk, or compute it and keep it; None if it is missing and not to be computed."""
    path = CACHE / f"{re.sub('[^A-Za-z0-9.-]+', '_', key)}.json"
    if path.exists():
        return dict(json.loads(path.read_text()))
    if "--cached" in sys.argv:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TupletWarning)
        result = compute()
    CACHE.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(result))
    beside.rename(path)
    print(f"{time.strftime('%H:%M:%S')} {key}", file=sys.stderr, flush=True)
    return result


def fitted(model: BaseEstimator, X: Any, Y: Any, seed: int) -> tuple[Any, float]:
    """Return a fitted copy of a model and the CPU seconds that it took."""
    model = clone(model).set_params(random_state=seed, progress=False)
    start = time.process_time()
    model.fit(X, Y)
    return model, time.process_time() - start


def markdown(frame: pd.DataFrame, corner: str = "") -> str:
    """Return a frame of texts as a Markdown table."""
    lines = [[corner, *map(str, frame.columns)], *([str(i), *map(str, row)] for i, row in frame.iterrows())]
    width = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))]
    texts = ["| " + " | ".join(t.ljust(w) for t, w in zip(line, width, strict=True)) + " |" for line in lines]
    return "\n".join([texts[0], "|" + "|".join("-" * (w + 2) for w in width) + "|", *texts[1:]])


def show(title: str, frame: pd.DataFrame, corner: str = "") -> None:
    """Print a table with its title."""
    print(f"**{title}**\n\n{markdown(frame, corner)}\n", flush=True)


# -- the simulation ---------------------------------------------------------------------------------------


def simulate(signal: str, seed: int, n_noise: int = 0, n_train: int = 500) -> tuple[np.ndarray, ...]:
    """Return training X and Y, test X and Y, and the true latent means of the test rows."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n_train + 1000, 3 + n_noise))
    wave = SIGNALS[signal] * np.sin(np.pi * X[:, 0] * X[:, 1])
    means = np.column_stack([wave - SHIFT, wave + SHIFT, SIGNALS[signal] * X[:, 2]])
    noise = rng.standard_normal(means.shape) @ np.linalg.cholesky(TRUE).T
    Y = (means + noise > 0).astype(int)
    return X[:n_train], Y[:n_train], X[n_train:], Y[n_train:], means[n_train:]


def judge(joint: JointDistribution, truth: JointDistribution, Y: np.ndarray) -> dict[str, float]:
    """Return the scores of the most probable combinations, and the divergence from the truth."""
    decisions = joint.mode().codes
    scores = {name: float(score(Y, decisions)) for name, score in SCORES.items()}
    log_p, log_q = (each.log_prob(OUTCOMES[:, None]) for each in (truth, joint))
    return scores | {"KL": float((np.exp(log_p) * (log_p - log_q)).sum(axis=0).mean())}


def replicate(signal: str, seed: int, model: BaseEstimator | None, n_noise: int = 0) -> dict[str, Any]:
    """Return all figures of one model on one data set; of the true distribution without a model."""
    X, Y, X_test, Y_test, means = simulate(signal, seed, n_noise)
    truth = Probit(means[None], TRUE[None])
    if model is None:
        return judge(truth, truth, Y_test)
    model, seconds = fitted(model, X, Y, seed)
    pairs = model.draws_.flat_correlations()[:, *PAIRS]
    diagnosis = {} if model.convergence_ is None else model.convergence_._asdict()
    return judge(model.predict_joint(X_test).distribution, truth, Y_test) | {
        "correlations": pairs.mean(axis=0).tolist(),
        "spread": pairs.std(axis=0).tolist(),
        "seconds": seconds,
        **diagnosis,
    }


def study(models: dict[str, BaseEstimator | None], n: dict[str, int], n_noise: int = 0) -> pd.DataFrame:
    """Return the figures of all models and of n replicates of each signal, one line each."""
    lines = []
    for seed in range(max(n.values())):
        for signal in (signal for signal in n if seed < n[signal]):
            for name, model in models.items():
                key = f"simulation-{signal}-noise{n_noise}-{name}-{seed}"
                job = partial(replicate, signal, seed, model, n_noise)
                result = kept(key, job)
                if result is not None:
                    lines.append({"signal": signal, "model": name, "seed": seed, **result})
    return pd.DataFrame(lines)


def simulation() -> None:
    """Print Tables 1 and 2 and Figure 1."""
    runs = study({"true": None, **MODELS}, REPLICATES)
    table_1(runs)
    table_2(runs)
    for score in SCORES:
        figure_1(runs, score)
    seconds = runs.groupby("model")["seconds"].mean().dropna().round(1)
    worst = runs[runs["model"] == "MB"]
    print(
        "CPU seconds of a fit: "
        + ", ".join(f"{name} {value}" for name, value in seconds.items())
        + f". MB: the median over fits of the largest R-hat is {worst['r_hat'].median():.2f}, of the least"
        f" effective sample size {worst['effective_size'].median():.0f} of 1,000 draws.\n"
    )


def table_1(runs: pd.DataFrame) -> None:
    """Print posterior means of the correlations: mean and standard deviation over replicates."""
    columns: dict[str, list[str]] = {"true": [f"{TRUE[i, j]:.1f}" for i, j in zip(*PAIRS, strict=True)]}
    for signal in SIGNALS:
        some = runs[(runs["signal"] == signal) & (runs["model"] == "MB")]
        if len(some) < 2:
            continue
        values, spread = (np.array(some[name].tolist()) for name in ("correlations", "spread"))
        found = zip(values.mean(axis=0), values.std(axis=0, ddof=1), spread.mean(axis=0), strict=True)
        columns[f"{signal} ({len(some)})"] = [f"{m:.3f} ± {s:.3f} ({w:.3f})" for m, s, w in found]
        if signal in PAPER_CORRELATIONS:
            columns[f"paper, {signal}"] = [f"{value:.2f}" for value in PAPER_CORRELATIONS[signal]]
    frame = pd.DataFrame(columns).set_index("true")
    show(
        "Table 1: correlations of MB, mean ± sd over replicates of posterior means (mean posterior sd)",
        frame,
        "true",
    )


def table_2(runs: pd.DataFrame) -> None:
    """Print divergences from the true distribution."""
    columns: dict[str, list[str]] = {}
    for signal in SIGNALS:
        these = runs[runs["signal"] == signal]
        if "KL" not in these or not set(MODELS) <= set(these["model"]):
            continue
        some = these.groupby("model")["KL"]
        mean, median = (each.reindex(list(MODELS)) for each in (some.mean(), some.median()))
        columns[f"{signal}: mean ({some.size().max()})"] = [f"{value:.4f}" for value in mean]
        columns[f"{signal}: median"] = [f"{value:.4f}" for value in median]
        if (signal, "MB") in PAPER_KL:
            paper = [PAPER_KL.get((signal, name)) for name in MODELS]
            columns[f"paper, {signal}"] = ["" if value is None else f"{value:.4f}" for value in paper]
    frame = pd.DataFrame(columns, index=list(MODELS))
    show("Table 2: Kullback-Leibler divergence from the true distribution", frame, "model")


def figure_1(runs: pd.DataFrame, score: str) -> None:
    """Print a score of every model, and the same centred by data set with the analysis of variance."""
    lines = {}
    for signal in SIGNALS:
        wide = runs[runs["signal"] == signal].pivot_table(score, "seed", "model")
        wide = wide.reindex(columns=["true", *MODELS]).dropna()
        if len(wide) < 2:
            continue
        centred = wide[list(MODELS)].sub(wide[list(MODELS)].mean(axis=1), axis=0)
        lines[f"{signal} ({len(wide)})"] = [f"{value:.3f}" for value in wide.mean()] + [
            block_anova(wide[list(MODELS)])
        ]
        lines[f"{signal}, centred"] = [
            "",
            *(f"{m:+.3f} ± {s:.3f}" for m, s in zip(centred.mean(), centred.std(), strict=True)),
            "",
        ]
    columns = ["true", *MODELS, "model effect"]
    show(f"Figure 1: {score}", pd.DataFrame.from_dict(lines, orient="index", columns=columns), "signal")


def block_anova(values: pd.DataFrame) -> str:
    """Test the effect of the columns, with the rows as blocks."""
    array = values.to_numpy()
    r, m = array.shape
    effect = array.mean(axis=0) - array.mean()
    rest = array - array.mean(axis=1, keepdims=True) - effect
    df = (m - 1) * (r - 1)
    if not df:
        return ""
    ratio = (r * (effect**2).sum() / (m - 1)) / ((rest**2).sum() / df)
    p = stats.f.sf(ratio, m - 1, df)
    return f"F({m - 1}, {df}) = {ratio:.1f}, p {'< 1e-6' if p < 1e-6 else f'= {p:.2g}'}"


def noise() -> None:
    """Print what two features without any effect do to the models."""
    models = {name: MODELS[name] for name in ("MB", "UB", "MLin")}
    lines = {}
    for signal in SIGNALS:
        for n_noise in (0, 2):
            runs = study(models, {signal: NOISE_REPLICATES}, n_noise)
            if len(runs):
                means = runs.groupby("model")[["KL", "subset accuracy"]].mean().reindex(list(models))
                lines[f"{signal}, {3 + n_noise} features"] = [f"{x:.3f}" for x in means.to_numpy().ravel()]
    title = f"Two more features that say nothing ({NOISE_REPLICATES} replicates)"
    columns = [f"{name}: {what}" for name in models for what in ("KL", "subset accuracy")]
    show(title, pd.DataFrame.from_dict(lines, orient="index", columns=columns), "signal")


def priors() -> None:
    """Print how the figures depend on settings and priors."""
    lines = {}
    for name, changes in VARIANTS.items():
        line = []
        for signal in ("weak", "strong"):
            model = ProbitForestClassifier(**TWO, **changes)
            runs = study({name: model}, {signal: PRIOR_REPLICATES})
            if len(runs):
                rho = np.array(runs["correlations"].tolist()).mean(axis=0)
                line += [f"{runs['KL'].mean():.4f}", " ".join(f"{value:.2f}" for value in rho)]
                line += [f"{runs['effective_size'].mean():.0f}", f"{runs['seconds'].mean():.0f}"]
        if len(line) == 8:
            lines[name] = line
    what = ("KL", "correlations", "least ESS of 500", "CPU s")
    columns = [f"{signal}: {each}" for signal in ("weak", "strong") for each in what]
    title = f"Sensitivity to priors and settings (replicates of each signal: {PRIOR_REPLICATES})"
    show(title, pd.DataFrame.from_dict(lines, orient="index", columns=columns), "MB with")


# -- real data --------------------------------------------------------------------------------------------


def split_scores(name: str, split: int, model: BaseEstimator | None) -> dict[str, Any]:
    """Return the scores of a model, or of the most frequent combination, on one split of a data set."""
    data = load_benchmark(name)
    X, Y = data.X, data.Y
    folds = list(ShuffleSplit(10, test_size=0.2, random_state=0).split(X))
    train, test = folds[split]
    if model is None:
        combinations, counts = np.unique(Y.iloc[train].to_numpy(), axis=0, return_counts=True)
        decisions, seconds = np.tile(combinations[counts.argmax()], (len(test), 1)), 0.0
    else:
        model, seconds = fitted(model, X.iloc[train], Y.iloc[train], split)
        decisions = model.predict_joint(X.iloc[test]).mode()
    truth = Y.iloc[test].to_numpy()
    decisions = np.asarray(decisions)
    return {
        "subset accuracy": float(exact_match(truth, decisions)),
        "accuracy": float(hamming_score(truth, decisions)),
        "seconds": seconds,
    }


def expected_accuracy(name: str, signal: str, seed: int, n_train: int) -> dict[str, float]:
    """Return how probable a model's decisions are under the true distribution: accuracy without noise."""
    X, Y, X_test, _, means = simulate(signal, seed, n_train=n_train)
    truth = np.exp(Probit(means[None], TRUE[None]).log_prob(OUTCOMES[:, None]))
    places = {tuple(outcome): i for i, outcome in enumerate(OUTCOMES.tolist())}
    if name == "true":
        chosen = truth.argmax(axis=0)
    elif name == "most frequent":
        seen = np.bincount([places[tuple(y)] for y in Y.tolist()], minlength=len(OUTCOMES))
        chosen = np.full(len(X_test), seen.argmax())
    else:
        model, _ = fitted(DECIDERS[name], X, Y, seed)
        codes = model.predict_joint(X_test).distribution.mode().codes
        chosen = np.array([places[tuple(code)] for code in codes.tolist()])
    return {"accuracy": float(truth[chosen, np.arange(len(chosen))].mean())}


DECIDERS: dict[str, BaseEstimator] = {
    "MB": ProbitForestClassifier(**TWO),
    "MB, r = 2": ProbitForestClassifier(shrinkage=2.0, **TWO),
    "MB, r = 3": ProbitForestClassifier(shrinkage=3.0, **TWO),
    "MB, 10 trees": ProbitForestClassifier(n_trees=10, **TWO),
    "MB, 50 trees": ProbitForestClassifier(n_trees=50, **TWO),
    "MB, deeper trees (beta = 1)": ProbitForestClassifier(beta=1.0, **TWO),
    "MB, uniform split probabilities": ProbitForestClassifier(select_features=False, **TWO),
    "MTru": MODELS["MTru"],
}


def decisions() -> None:
    """Print what stands between the decisions of MB and those of the truth: settings, or rows."""
    cells: dict[str, dict[str, str]] = {}
    for signal, n_train, names in (
        ("weak", 500, ["true", "most frequent", *DECIDERS]),
        ("weak", 2000, ["true", "MB", "MTru"]),
        ("weak", 8000, ["true", "MB", "MTru"]),
        ("strong", 500, ["true", "most frequent", *DECIDERS]),
        ("strong", 2000, ["true", "MB", "MTru"]),
    ):
        column = f"{signal}, {n_train:,} rows"
        for name in names:
            found = [
                kept(
                    f"decisions-{signal}-{n_train}-{name}-{seed}",
                    partial(expected_accuracy, name, signal, seed, n_train),
                )
                for seed in DECISION_SEEDS
            ]
            values = [each["accuracy"] for each in found if each is not None]
            if values:
                cells.setdefault(name, {})[column] = f"{np.mean(values):.3f}"
    frame = pd.DataFrame.from_dict(cells, orient="index").fillna("")
    title = f"Expected subset accuracy of decisions, {len(DECISION_SEEDS)} replicates (seeds from 100)"
    show(title, frame, "decisions of")


def real() -> None:
    """Print a table in the shape of the paper's Table 3."""
    models = {
        "Multivariate BART": ProbitForestClassifier(**TWO),
        "Univariate BART": ProbitForestClassifier(correlation="identity", **TWO),
        "Baseline": None,
    }
    columns: dict[str, list[str]] = {}
    remarks = []
    for data in ("emotions", "flags"):
        found: dict[str, list[Any]] = {name: [] for name in models}
        for split in range(SPLITS):
            for name, model in models.items():
                result = kept(f"real-{data}-{name}-{split}", partial(split_scores, data, split, model))
                found[name] += [] if result is None else [result]
        runs = {name: pd.DataFrame(results) for name, results in found.items()}
        if not all(map(len, runs.values())):
            continue
        for what in ("subset accuracy", "accuracy"):
            columns[f"{data}: {what}"] = [f"{run[what].mean():.3f}" for run in runs.values()]
        multi, uni = (runs[name]["subset accuracy"].tolist() for name in list(models)[:2])
        seconds = runs["Multivariate BART"]["seconds"].mean()
        remarks.append(f"{data} {corrected_t(multi, uni)}, {len(multi)} splits, {seconds:.0f} CPU s a fit")
    columns |= {
        "paper (CHD): subset accuracy": ["0.19", "0.18", "0.14"],
        "accuracy": ["0.56", "0.56", "0.53"],
    }
    title = "Table 3: random splits 80/20; accuracy is the mean over labels"
    show(title, pd.DataFrame(columns, index=list(models)), "model")
    print("Multivariate less univariate subset accuracy, corrected t test: " + "; ".join(remarks) + ".\n")


def corrected_t(left: list[float], right: list[float]) -> str:
    """Compare scores of the same random splits; the variance allows for shared training rows."""
    n = min(len(left), len(right))
    gap = np.array(left[:n]) - np.array(right[:n])
    error = np.sqrt((1 / n + 0.2 / 0.8) * gap.var(ddof=1)) if n > 1 else np.nan
    p = 2 * stats.t.sf(abs(gap.mean() / error), n - 1)
    return f"{gap.mean():+.3f} (p = {p:.2g})"


# -- cost -------------------------------------------------------------------------------------------------


def yeast() -> tuple[np.ndarray, np.ndarray]:
    """Return features and labels of yeast."""
    data = load_benchmark("yeast")
    return data.X.to_numpy(dtype=float), data.Y.to_numpy(dtype=int)


def step_sizes() -> dict[str, Any]:
    """Return the effective sample size per CPU second of two steps for R, given residuals of yeast."""
    X, Y = yeast()
    model, _ = fitted(ProbitClassifier(n_burn=200, n_draws=50, thin=1, n_chains=1), X, Y, 0)
    residuals = model.ends_[0].latent - model.draws_.predict(model.scaler_.transform(X))[-1].T
    cross, n = residuals @ residuals.T, len(X)
    pairs = np.triu_indices(len(cross), 1)
    answer = {}
    for name, rule, n_adapt, n_steps in (
        ("HMC", Hamiltonian(), 500, 20_000),
        ("paper", Metropolis(), 20_000, 100_000),
    ):
        rng = np.random.default_rng(0)
        state = rule.start(len(cross), n, rng)
        for _ in range(n_adapt):
            state, _ = rule.step(state, cross, n, rng, True)
        trace, start = np.empty((n_steps, len(pairs[0]))), time.process_time()
        for i in range(n_steps):
            state, _ = rule.step(state, cross, n, rng, False)
            trace[i] = state.matrix[pairs]
        seconds = time.process_time() - start
        ess = array_stats.ess(trace[None], chain_axis=0, draw_axis=1)
        answer[name] = {
            "least": float(ess.min()),
            "median": float(np.median(ess)),
            "seconds": seconds,
            "steps": n_steps,
        }
    return answer


def steps() -> None:
    """Print the effective sample size of the steps for R."""
    found = kept("steps-yeast", step_sizes)
    if found is None:
        return
    frame = pd.DataFrame(
        {
            name: [
                f"{one['steps']:,}",
                f"{one['seconds']:.1f}",
                f"{one['least']:.0f}",
                f"{one['least'] / one['seconds']:.1f}",
                f"{one['median'] / one['seconds']:.1f}",
            ]
            for name, one in found.items()
        },
        index=["steps", "CPU s", "least effective size", "least per CPU s", "median per CPU s"],
    ).T
    ratio = (found["HMC"]["least"] / found["HMC"]["seconds"]) / (
        found["paper"]["least"] / found["paper"]["seconds"]
    )
    show("Steps for R given the residuals of yeast (14 labels, 91 correlations)", frame, "step")
    print(f"The least effective size per second of HMC is {ratio:.0f} times that of the paper's step.\n")


def fit_costs() -> dict[str, Any]:
    """Return CPU seconds of a multivariate fit and of independent ones by stochtree, equal in iterations."""
    from stochtree import BARTModel, OutcomeModel

    X, Y = yeast()
    n_trees, n_burn, n_draws = 50, 50, 50
    answer: dict[str, list[float]] = {"multivariate": [], "independent": []}
    for seed in range(2):
        model = ProbitForestClassifier(n_trees, n_burn=n_burn, n_draws=n_draws, thin=1, n_chains=1)
        answer["multivariate"].append(fitted(model, X, Y, seed)[1])
        start = time.process_time()
        for j in range(Y.shape[1]):
            BARTModel().sample(
                X,
                Y[:, j].astype(float),
                num_gfr=0,
                num_burnin=n_burn,
                num_mcmc=n_draws,
                general_params={
                    "outcome_model": OutcomeModel(outcome="binary", link="probit"),
                    "random_seed": seed,
                    "sample_sigma2_global": False,
                },
                mean_forest_params={"num_trees": n_trees},
            )
        answer["independent"].append(time.process_time() - start)
    return answer


def cost() -> None:
    """Print what a multivariate fit costs beside univariate ones."""
    found = kept("cost-yeast", fit_costs)
    if found is not None:
        multi, alone = min(found["multivariate"]), min(found["independent"])
        print(
            "**Cost on yeast** (14 labels, 50 trees, 100 iterations, the better of two runs): multivariate"
            f" {multi:.1f} CPU s, 14 fits of stochtree's own probit BART {alone:.1f} CPU s,"
            f" ratio {multi / alone:.2f}.\n"
        )


def orthant_errors(q: int) -> dict[str, Any]:
    """Return relative errors and costs of GHK and of thresholded draws, for the same posterior draws."""
    rng = np.random.default_rng(q)
    if q == 3:
        X, Y, X_test, _, _ = simulate("weak", 0)
        model, _ = fitted(ProbitForestClassifier(), X, Y, 0)
        joint = model.predict_joint(X_test[:50]).distribution
    else:
        X, Y = yeast()
        model, _ = fitted(ProbitClassifier(n_burn=200, n_draws=500, **TWO), X[:1500], Y[:1500], 0)
        joint = model.predict_joint(X[1500:1550]).distribution
    means, matrices = joint.means, joint.correlations
    reference = Probit(means, matrices, n_points=256, seed=99)
    outcomes = joint.mode().codes
    truth = np.exp(reference.log_prob(outcomes))
    answer: dict[str, Any] = {"draws": len(means)}
    for n_points in (1, joint.n_points):
        errors, seconds = [], []
        for seed in range(20):
            start = time.process_time()
            found = np.exp(Probit(means, matrices, n_points=n_points, seed=seed).log_prob(outcomes))
            seconds.append(time.process_time() - start)
            errors.append(found / truth - 1)
        answer[f"GHK, points per draw: {n_points}"] = [
            float(np.sqrt(np.mean(np.square(errors)))),
            min(seconds),
        ]
    lower = np.linalg.cholesky(matrices + 1e-10 * np.eye(q))
    errors, seconds = [], []
    for _ in range(20):
        start = time.process_time()
        found = np.zeros(len(outcomes))
        for _ in range(10):
            z = means + np.einsum("dij,dnj->dni", lower, rng.standard_normal(means.shape))
            found += ((z > 0) == outcomes).all(axis=2).mean(axis=0) / 10
        seconds.append(time.process_time() - start)
        errors.append(found / truth - 1)
    answer["thresholding, c = 10"] = [float(np.sqrt(np.mean(np.square(errors)))), min(seconds)]
    return answer


def ghk() -> None:
    """Print errors of orthant probabilities: relative, of the most probable combination of 50 rows."""
    lines = {}
    for q in (3, 14):
        found = kept(f"ghk-{q}", partial(orthant_errors, q))
        for name, value in (found or {}).items():
            if name != "draws":
                lines[f"{q} labels, {name}"] = [f"{value[0]:.4f}", f"{1000 * value[1]:.1f}"]
    columns = ["root mean square relative error", "CPU ms for 50 rows"]
    show(
        "Probability of the most probable combination, 1,000 draws",
        pd.DataFrame.from_dict(lines, orient="index", columns=columns),
        "method",
    )


PARTS = {
    "simulation": simulation,
    "decisions": decisions,
    "real": real,
    "steps": steps,
    "cost": cost,
    "ghk": ghk,
    "noise": noise,
    "priors": priors,
}


def main() -> None:
    """Print the tables of the parts named on the command line, or of all."""
    named = [word for word in sys.argv[1:] if not word.startswith("--")]
    for part in named or PARTS:
        PARTS[part]()


if __name__ == "__main__":
    main()
