"""The command line from a table to a model, predictions, scores and pages."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import TimeSeriesSplit
from typer.testing import CliRunner

import tuplet
from tuplet.core.exceptions import InputError
from tuplet.io import Dataset, read_table
from tuplet.surface.cli.app import app
from tuplet.surface.cli.catalogue import ESTIMATORS, MODELS, make_model, split_names
from tuplet.surface.cli.data import write_dataset

runner = CliRunner()
TARGETS = "species,island,sex"


def run(*arguments, code=0, stdin=None):
    result = runner.invoke(app, [str(each) for each in arguments], input=stdin)
    assert result.exit_code == code, result.output + str(result.exception)
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a table and a model of it."""
    where = tmp_path_factory.mktemp("cli")
    data = tuplet.load_penguins()
    codes = np.where(np.arange(344) % 2, "01", "02").astype(object)
    codes[300:] = "x3"
    frame = data.frame.assign(code=codes, id=np.arange(344) + 1000)
    frame.to_csv(where / "p.csv", index=False)
    arguments = ["fit", where / "p.csv", "-t", TARGETS, "--model", "chain", "--ignore", "id"]
    result = run(*arguments, "-o", where / "m.tuplet")
    assert "344 rows, 6 features" in result.output
    assert "Saved ChainClassifier" in result.output
    return where


@pytest.fixture(scope="module")
def expected(folder):
    """The same predictions in Python."""
    model = tuplet.load_model(folder / "m.tuplet")
    frame = pd.read_csv(folder / "p.csv", dtype={"code": str})
    return model.predict_joint(frame[list(model.feature_names_in_)])


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet", "jsonl", "csv.gz"])
def test_predictions_are_those_of_python(folder, expected, suffix):
    path = folder / f"out.{suffix}"
    run("predict", folder / "m.tuplet", folder / "p.csv", "-k", 2, "--out", path, "--keep", "id")
    top = expected.top_k(2)
    if suffix == "jsonl":
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert [line["id"] for line in lines[:2]] == ["1000", "1001"]
        chances = [line["combinations"][1]["probability"] for line in lines]
        species = [line["labels"]["species"] for line in lines]
    else:
        answer = (
            pd.read_parquet(path)
            if suffix == "parquet"
            else pd.read_csv(path, sep="\t" if suffix == "tsv" else ",")
        )
        assert list(answer.columns) == [
            "id", "species", "island", "sex", "P(species)", "P(island)", "P(sex)",
            "top1.species", "top1.island", "top1.sex", "top1.probability",
            "top2.species", "top2.island", "top2.sex", "top2.probability",
        ]  # fmt: skip
        chances, species = answer["top2.probability"].tolist(), answer["species"].tolist()
        marginal = expected.marginals()["species"].max(axis=1)
        np.testing.assert_allclose(answer["P(species)"], marginal, rtol=1e-5)
    np.testing.assert_allclose(chances, top[top["rank"] == 2]["probability"], rtol=1e-5)
    assert species == expected.decide("hamming")["species"].tolist()


def test_columns_of_digits_stay_text(folder, tmp_path, expected):
    """A table in which a text column looks like numbers means the same as in training."""
    frame = pd.read_csv(folder / "p.csv", dtype={"code": str})[:5]
    frame.to_csv(tmp_path / "new.csv", index=False)
    result = run("predict", folder / "m.tuplet", tmp_path / "new.csv", "--out", tmp_path / "out.csv")
    answer = pd.read_csv(tmp_path / "out.csv")
    np.testing.assert_allclose(answer["P(island)"], expected[:5].marginals()["island"].max(axis=1), rtol=1e-5)
    assert result.output == ""


def test_known_labels_and_losses(folder, expected):
    known = run("predict", folder / "m.tuplet", folder / "p.csv", "--known", "sex=male", "--loss", "subset")
    answer = pd.read_csv(io.StringIO(known.stdout))
    mode = expected.given(sex="male").mode()
    assert answer["island"].tolist() == mode["island"].tolist()
    assert (answer["P(sex)"] == 1).all()


def test_labels_of_the_table_may_be_known(folder):
    result = run(
        "predict", folder / "m.tuplet", folder / "p.csv", "--use-labels", "--all-labels", "--loss", "subset"
    )
    answer, truth = pd.read_csv(io.StringIO(result.stdout)), pd.read_csv(folder / "p.csv")
    assert answer["island"].tolist() == truth["island"].tolist()
    np.testing.assert_allclose(answer.filter(like="P(island=").sum(axis=1), 1, rtol=1e-5)


def test_standard_streams(folder):
    text = (folder / "p.csv").read_text()
    result = run("predict", folder / "m.tuplet", "-", "--out-format", "jsonl", stdin=text)
    assert len(result.stdout.splitlines()) == 344


def test_scores(folder, expected):
    answer = json.loads(run("evaluate", folder / "m.tuplet", folder / "p.csv", "--json").stdout)
    truth = tuplet.load_penguins().Y
    assert answer["rows"] == 344
    loss = tuplet.metrics.joint_log_loss(truth, expected)
    assert answer["scores"]["joint_log_likelihood"] == pytest.approx(-loss)
    assert answer["accuracy"]["species"] == pytest.approx(
        (expected.decide("hamming")["species"].astype(str) == truth["species"].astype(str)).mean()
    )
    shown = run("evaluate", folder / "m.tuplet", folder / "p.csv").output
    assert "exact_match" in shown
    assert "baseline" in shown


def test_one_row_explained(folder):
    shown = run("explain", folder / "m.tuplet", folder / "p.csv", "--row", 145).output
    for part in (
        "Most probable combinations",
        "Single class variables",
        "Mutual information",
        "Labels in the file: species=",
    ):
        assert part in shown
    assert (
        "rows 0 to 343" in run("explain", folder / "m.tuplet", folder / "p.csv", "--row", 344, code=1).stderr
    )


def test_reasons_of_rules_and_graphs(folder, tmp_path):
    rules = tmp_path / "rules.txt"
    rules.write_text("0.99: Gentoo -> Biscoe\n")
    arguments = ["fit", folder / "p.csv", "-t", TARGETS, "--set", "n_rules=0", "--rules", rules]
    run(*arguments, "-m", "rules", "-o", tmp_path / "r.tuplet")
    shown = run("explain", tmp_path / "r.tuplet", folder / "p.csv", "--row", 200).output
    assert "Gentoo -> Biscoe" in shown


def test_report(folder, tmp_path):
    run("report", folder / "m.tuplet", folder / "p.csv", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "species" in page


def test_comparison(folder, tmp_path):
    shown = run(
        "compare", folder / "p.csv", "-t", TARGETS, "--models", "prior,chain", "--folds", 2,
        "--out", tmp_path / "page.html",
    ).output  # fmt: skip
    assert shown.index("chain") < shown.index("prior"), "the best comes first"
    assert (tmp_path / "page.html").exists()


def test_comparison_with_groups(folder):
    asked = ["compare", folder / "p.csv", "-t", "sex", "--models", "prior", "--groups"]
    assert "2 folds" in run(*asked, "island", "--folds", 2).output
    assert "number of groups, 3" in run(*asked, "island", "--folds", 4, code=1).stderr
    assert "has no column 'ward'" in run(*asked, "ward", code=1).stderr


def test_dates_of_a_table(folder, tmp_path):
    X = pd.DataFrame({"seen": pd.date_range("2024-01-01", periods=40).astype(str), "late": [0, 1] * 20})
    X.to_csv(tmp_path / "visits.csv", index=False)
    about = json.loads(run("info", tmp_path / "visits.csv", "-t", "late", "--json").stdout)
    assert about["features"]["seen"] == {"type": "dates", "values": "2024-01-01 to 2024-02-09", "missing": 0}
    run("fit", tmp_path / "visits.csv", "-t", "late", "-m", "chain", "-o", tmp_path / "m.tuplet")
    (tmp_path / "new.csv").write_text("seen\n2031-05-01\n\n2024-01-02T10:00\n")
    assert len(run("predict", tmp_path / "m.tuplet", tmp_path / "new.csv").stdout.splitlines()) == 4
    (tmp_path / "new.csv").write_text("seen\nsoon\n")
    assert (
        "must hold dates in the column 'seen'"
        in run("predict", tmp_path / "m.tuplet", tmp_path / "new.csv", code=1).stderr
    )


def test_packed_parquet_is_read_in_pieces(folder, tmp_path):
    run("data", "convert", folder / "p.csv", tmp_path / "p.parquet.gz", "-t", TARGETS)
    plain = run("predict", folder / "m.tuplet", folder / "p.csv").stdout
    assert run("predict", folder / "m.tuplet", tmp_path / "p.parquet.gz").stdout == plain


def test_new_rows_of_a_sparse_format(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{'1,3' if k % 2 else '2'} 1:{rng.random():.3f} 2:{k % 2} 4:1" for k in range(40)]
    (tmp_path / "train.svm").write_text("\n".join(lines) + "\n")
    run("fit", tmp_path / "train.svm", "-m", "chain", "-o", tmp_path / "m")
    (tmp_path / "new.svm").write_text(" 1:0.5 2:1\n 1:0.1\n")
    said = run("predict", tmp_path / "m", tmp_path / "new.svm").stdout.splitlines()
    assert [line.split(",")[:3] for line in said] == [["y1", "y2", "y3"], ["1", "0", "1"], ["0", "1", "0"]]
    (tmp_path / "test.svm").write_text("2 1:0.5\n2 1:0.1\n")
    assert json.loads(run("evaluate", tmp_path / "m", tmp_path / "test.svm", "--json").stdout)["rows"] == 2


def test_splits_survive_csv_files(tmp_path):
    train = np.array([True, False, True])
    data = Dataset("d", pd.DataFrame({"x": [1.0, 2.0, 3.0]}), pd.DataFrame({"y": list("abc")}), train=train)
    write_dataset(replace(data, folds=np.array([0, 1, 0])), str(tmp_path / "d.csv"))
    again = read_table(tmp_path / "d.csv", "y")
    assert again.train.tolist() == train.tolist()
    assert again.folds.tolist() == [0, 1, 0]


def test_text_that_would_be_lost_is_told(tmp_path, capsys):
    data = Dataset("d", pd.DataFrame({"x": ["NA", "b"]}), pd.DataFrame({"y": [0, 1]}))
    write_dataset(data, str(tmp_path / "d.csv"))
    assert "'x' holds text that means a missing value" in capsys.readouterr().err


@pytest.mark.parametrize("model", ["independent", "powerset"])
def test_a_seed_repeats_every_model(model, folder, tmp_path):
    said = []
    for name in "ab":
        asked = ["fit", folder / "p.csv", "-t", "sex", "-m", model, "-e", "extra-trees", "--seed", 3]
        run(*asked, "-o", tmp_path / name)
        said.append(run("predict", tmp_path / name, folder / "p.csv").stdout)
    assert said[0] == said[1]


def test_a_comparison_of_nothing_fails(folder, tmp_path):
    asked = ["compare", folder / "p.csv", "-t", "sex", "--models", "chain", "--folds", 2, "--time-limit", 0.1]
    assert "no model could be compared" in run(*asked, code=1).stderr


def test_columns_that_are_nearly_numbers_are_told(tmp_path):
    frame = pd.DataFrame({"x": [str(k) for k in range(39)] + ["none"], "y": [0, 1] * 20})
    frame.to_csv(tmp_path / "d.csv", index=False)
    said = run("fit", tmp_path / "d.csv", "-t", "y", "-m", "chain", "-o", tmp_path / "m").stderr
    assert "The column 'x' holds numbers, but also 'none'" in said


def test_home_folders_are_found(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    run("fit", folder / "p.csv", "-t", "sex", "-m", "prior", "--out=~/m.tuplet")
    assert "PriorClassifier" in run("info", "~/m.tuplet").output
    run("compare", folder / "p.csv", "-t", "sex", "--models", "prior", "--folds", 2, "--out=~/page.html")
    assert (tmp_path / "page.html").exists()


def test_information(folder):
    model = json.loads(run("info", folder / "m.tuplet", "--json").stdout)
    assert model["model"] == "ChainClassifier"
    data = json.loads(run("info", folder / "p.csv", "-t", TARGETS, "--json").stdout)
    assert data["rows"] == 344
    assert data["class_variables"]["sex"]["missing"] == 11
    assert "8 columns" not in run("info", folder / "m.tuplet").output
    assert "10 columns" in run("info", folder / "p.csv").output


def test_data_commands(tmp_path):
    assert "penguins" in run("data", "list").output
    run("data", "get", "penguins", tmp_path / "p.parquet")
    run("data", "convert", tmp_path / "p.parquet", tmp_path / "p.arff")
    run("data", "convert", tmp_path / "p.parquet", tmp_path / "p.tab")
    assert (tmp_path / "p.tab").read_text().startswith("bill_length_mm\t")
    data = tuplet.read_table(tmp_path / "p.arff")
    assert list(data.Y) == TARGETS.split(",")
    assert "not a known format" in run("data", "get", "penguins", tmp_path / "p.xyz", code=1).stderr


# -- awkward tables and models -----------------------------------------------------------------------------


def test_kept_columns_stay_what_they_are(folder, tmp_path, expected):
    """A feature that comes along is still a number to the model; a true label does not hide the answer."""
    asked = ["predict", folder / "m.tuplet", folder / "p.csv", "--keep", "bill_length_mm,sex,sex"]
    for name in ("out.csv", "out.parquet"):
        run(*asked, "--out", tmp_path / name)
    answer = pd.read_csv(tmp_path / "out.csv")
    assert list(answer.columns[:4]) == ["bill_length_mm", "true.sex", "species", "island"]
    truth = pd.read_csv(folder / "p.csv")
    np.testing.assert_array_equal(answer["bill_length_mm"], truth["bill_length_mm"])
    assert answer["true.sex"].fillna("").tolist() == truth["sex"].fillna("").tolist()
    np.testing.assert_allclose(answer["P(sex)"], expected.marginals()["sex"].max(axis=1), rtol=1e-5)
    assert pd.read_parquet(tmp_path / "out.parquet")["sex"].tolist() == answer["sex"].tolist()


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    """A table whose labels are large numbers with gaps, and booleans; and a model of it."""
    where = tmp_path_factory.mktemp("numbers")
    frame = pd.DataFrame({"x": np.arange(60.0), "since": "2024-01-01", "on": np.arange(60) % 3 == 0})
    frame["code"] = np.where(frame["x"] < 30, 1234567, 7654321).astype(float)
    frame.loc[::7, "code"] = np.nan
    frame.to_csv(where / "n.csv", index=False)
    run("fit", where / "n.csv", "-t", "code,on", "-m", "chain", "-o", where / "n.tuplet")
    return where


def test_labels_keep_all_their_digits(numbers):
    result = run("predict", numbers / "n.tuplet", numbers / "n.csv", "-k", 1)
    lines = result.stdout.splitlines()
    assert lines[1].startswith("1234567,")
    assert ",7654321," in lines[-1]


@pytest.mark.parametrize("known", ["code=1234567", "code=1234567.0", "on=true", "on=True"])
def test_known_labels_are_numbers_and_truths(numbers, known):
    result = run("predict", numbers / "n.tuplet", numbers / "n.csv", "--known", known)
    name = known.partition("=")[0]
    assert (pd.read_csv(io.StringIO(result.stdout))[f"P({name})"] == 1).all()


def test_dates_of_other_formats(numbers, tmp_path):
    """A model that learned dates takes them from text."""
    frame = pd.read_csv(numbers / "n.csv", parse_dates=["since"])
    frame.to_parquet(tmp_path / "n.parquet")
    run("fit", tmp_path / "n.parquet", "-t", "on", "-m", "chain", "-o", tmp_path / "d.tuplet")
    answers = [
        run("predict", tmp_path / "d.tuplet", path).stdout
        for path in (numbers / "n.csv", tmp_path / "n.parquet")
    ]
    assert answers[0] == answers[1]


def test_models_of_polars_and_of_other_losses(folder, tmp_path, expected):
    polars = pytest.importorskip("polars")
    frame = pd.read_csv(folder / "p.csv")[["body_mass_g", "species", "island"]].dropna()
    X, Y = frame[["body_mass_g"]], frame[["species", "island"]]
    model = tuplet.DecisionClassifier(tuplet.ChainClassifier(), loss="subset")
    model.fit(polars.DataFrame(X.to_dict("list")), polars.DataFrame(Y.to_dict("list")))
    tuplet.save_model(model, tmp_path / "m.tuplet")
    frame.to_csv(tmp_path / "p.csv", index=False)
    run("evaluate", tmp_path / "m.tuplet", tmp_path / "p.csv")
    result = run("predict", tmp_path / "m.tuplet", tmp_path / "p.csv", "-k", 1)
    answer = pd.read_csv(io.StringIO(result.stdout))
    assert answer["island"].tolist() == answer["top1.island"].tolist(), "the loss of the model"


def test_unknown_labels_are_mentioned(folder, tmp_path):
    frame = pd.read_csv(folder / "p.csv", dtype={"code": str}).assign(sex="other")
    frame.to_csv(tmp_path / "new.csv", index=False)
    assert (
        "unknown to the model, 'other'" in run("evaluate", folder / "m.tuplet", tmp_path / "new.csv").stderr
    )
    shown = run("explain", folder / "m.tuplet", tmp_path / "new.csv")
    assert "some of these labels are unknown to the model" in " ".join(shown.stdout.split())


def test_names_of_rows_are_no_features(folder, tmp_path):
    frame = pd.read_csv(folder / "p.csv")
    frame.assign(tag=[f"t{i}" for i in range(344)]).to_csv(tmp_path / "p.csv", index=False)
    result = run("fit", tmp_path / "p.csv", "-t", "sex", "-m", "independent", "-o", tmp_path / "[a].tuplet")
    assert result.stderr.count("The column 'tag' is left out") == 1
    assert "[a].tuplet" in result.stdout
    assert result.stderr.count("warning") == 1


def test_rules_are_printed_with_their_names(folder, tmp_path):
    (tmp_path / "rules.txt").write_text("[home] 0.99: Chinstrap -> Dream\n")
    arguments = ["fit", folder / "p.csv", "-t", TARGETS, "--set", "n_rules=0", "-m", "rules"]
    shown = run(*arguments, "--rules", tmp_path / "rules.txt", "-o", tmp_path / "r.tuplet").stdout
    assert "[home] 0.99: Chinstrap -> Dream" in shown


def test_an_unknown_model_is_told_with_the_option_that_named_it(folder):
    said = run("compare", folder / "p.csv", "-t", "sex", "--models", "chan", code=1).stderr
    assert "--models: expected one of" in said
    assert "did you mean 'chain'?" in " ".join(said.split())


def test_information_about_a_stream(folder):
    text = (folder / "p.csv").read_text()
    assert "standard input: 344 rows, 10 columns" in run("info", "-", stdin=text).stdout


def test_an_interrupted_comparison_replaces_nothing(folder, tmp_path, monkeypatch):
    page = tmp_path / "page.html"
    page.write_text("old")

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("tuplet.evaluate.jobs.run_job", stop)
    asked = ["compare", folder / "p.csv", "-t", "sex", "--models", "prior,chain", "--folds", 2]
    result = run(*asked, "--out", page, code=130)
    assert "stopped; no file was written" in result.stderr
    assert page.read_text() == "old"


def test_ctrl_c_inside_of_a_compiled_loop_is_told_as_such(folder, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise SystemError("a kernel returned a result with an exception set") from KeyboardInterrupt()

    monkeypatch.setattr(tuplet.ChainClassifier, "_fit", stop)
    asked = ["fit", folder / "p.csv", "-t", "sex", "-m", "chain", "-o", tmp_path / "m.tuplet"]
    assert "stopped; no file was written" in run(*asked, code=130).stderr


def test_what_nobody_foresaw_is_one_sentence(folder, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(tuplet.ChainClassifier, "predict_joint", fail)
    said = run("predict", folder / "m.tuplet", folder / "p.csv", code=1).stderr
    assert said.startswith("error: ZeroDivisionError: by nothing (test_cli_files.py, line")
    assert len(said.splitlines()) == 1


def test_pipes_and_links_stay_what_they_are(folder, tmp_path):
    pipe, target, link = tmp_path / "pipe", tmp_path / "target.csv", tmp_path / "link.csv"
    os.mkfifo(pipe)
    target.write_text("old")
    link.symlink_to(target)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True) as reader:
        run("predict", folder / "m.tuplet", folder / "p.csv", "--out", pipe)
        said = reader.stdout.read()
    assert pipe.is_fifo()
    run("predict", folder / "m.tuplet", folder / "p.csv", "--out", link)
    assert link.is_symlink()
    assert target.read_text() == said


def test_streams_that_are_closed_or_know_no_bars(folder):
    start = f"{sys.executable} -m tuplet"
    closed = subprocess.run(f"{start} models >&-", shell=True, capture_output=True, text=True)
    assert (closed.returncode, closed.stderr) == (0, "")
    command, plain = f"{start} explain m.tuplet p.csv", {**os.environ, "PYTHONIOENCODING": "ascii"}
    shown = subprocess.run(command, shell=True, capture_output=True, text=True, env=plain, cwd=folder)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "Adelie ? " in shown.stdout


# -- names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MODELS)
def test_every_model_can_be_made(name):
    model = make_model(name, random_state=3, time_budget=5.0)
    assert hasattr(model, "predict_joint")
    assert model.get_params().get("random_state", 3) == 3


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_classifier_can_be_inside(name):
    assert make_model("chain", estimator=name).estimator is not None
    assert name in run("models").output


def test_settings():
    model = make_model("ChainClassifier", settings=["n_chains=3", "order=random"])
    assert (model.n_chains, model.order) == (3, "random")
    for bad in ("n_chain=3", "n_chains"):
        with pytest.raises(InputError, match=r"--set: expected parameter=value .* n_chains"):
            make_model("chain", settings=[bad])
    with pytest.raises(InputError, match="did you mean 'chain'"):
        make_model("chan")
    with pytest.raises(InputError, match="takes no rules"):
        make_model("chain", rules="x")
    with pytest.raises(InputError, match="no base classifier"):
        make_model("prior", estimator="forest")


def test_names_with_commas():
    assert split_names(r"a, b\,c,,d") == ["a", "b,c", "d"]
    assert split_names(None) == []


# -- errors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["fit", "{p}"], "give --targets, by name, pattern or position"),
        (["fit", "{p}", "-t", "nothing"], "no column that --targets 'nothing' stands for"),
        (["fit", "{p}", "-t", "sex", "--out", "{d}/no/m.tuplet"], "there is no folder"),
        (["fit", "{p}", "-t", "sex", "--ignore", "x"], "has no feature 'x'"),
        (["fit", "{d}/nowhere.csv", "-t", "sex"], "there is no file"),
        (["fit", "{p}", "-t", "sex", "-m", "rules", "--rules", "{d}/none"], "cannot be read"),
        (["predict", "{m}", "{m}"], "this is a model file of tuplet, not a table"),
        (["predict", "{p}", "{p}"], "not a model"),
        (["predict", "{m}", "{p}", "--known", "sex=blue"], "has the labels female, male; found 'blue'"),
        (["predict", "{m}", "{p}", "--known", "size"], "expected name=label"),
        (["predict", "{m}", "{p}", "--loss", "f7"], "loss must be one of"),
        (["predict", "{m}", "{p}", "--out", "{d}/x.abc"], "not a known format"),
        (["predict", "{m}", "{p}", "--keep", "zip"], "has no column 'zip'"),
        (["evaluate", "{m}", "{short}"], "lacks the columns"),
        (["compare", "{p}", "-t", "sex", "--models", ","], "at least one model"),
        (["info", "{d}/nowhere.tuplet"], "no"),
        (["fit", "{p}", "-t", "sex", "--out", "{p}"], "would be lost"),
        (["fit", "{p}", "-t", "sex", "--out", "-"], "not a regular file"),
        (["report", "{m}", "{p}", "--out", "{m}"], "would be lost"),
        (["compare", "{p}", "-t", "sex", "--out", "{p}"], "would be lost"),
        (["data", "convert", "{p}", "{p}", "-t", "sex"], "would be lost"),
        (["predict", "{m}", "{p}", "--out", "{p}"], "would be lost"),
        (["predict", "{m}", "{p}", "--out-format", "xml"], "--out-format: expected one of csv"),
        (["predict", "{m}", "{p}", "--known", "sex=male", "--known", "sex=female"], "given twice"),
    ],
)
def test_mistakes_are_one_sentence(folder, arguments, message):
    (folder / "short.csv").write_text("species,island,sex\nAdelie,Dream,male\n")
    places = {"p": folder / "p.csv", "m": folder / "m.tuplet", "d": folder, "short": folder / "short.csv"}
    result = run(*(each.format(**places) for each in arguments), code=1)
    assert result.stderr.startswith("error: ")
    assert message in " ".join(result.stderr.split())
    assert "Traceback" not in result.output
    assert result.stdout == ""


def test_a_failed_run_leaves_the_old_output(folder, tmp_path):
    old = tmp_path / "out.csv"
    old.write_text("old")
    bad = tmp_path / "bad.csv"
    header, first, *rest = (folder / "p.csv").read_text().splitlines()
    bad.write_text("\n".join([header, first, *rest[:50], "broken,line"]))
    result = run("predict", folder / "m.tuplet", bad, "--out", old, code=1)
    assert "line 53" in result.stderr
    assert old.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.csv", "out.csv"]


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_run_leaves_the_old_output(folder, tmp_path, how):
    """Rows come through a pipe that never ends, so the run is half-way for sure."""
    old = tmp_path / "out.csv"
    old.write_text("old")
    command = [sys.executable, "-m", "tuplet", "predict", folder / "m.tuplet", "-", "--out", old]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write((folder / "p.csv").read_bytes())
        process.stdin.flush()
        while not list(tmp_path.glob(".out.csv.*")) and process.poll() is None:
            time.sleep(0.05)
        os.kill(process.pid, how)
        said = process.stderr.read()
    assert old.read_text() == "old"
    if how != signal.SIGKILL:
        assert process.returncode == 130
        assert b"stopped; no file was written" in said
        assert not list(tmp_path.glob(".*"))


def test_whoever_stops_reading_is_no_error(folder):
    command = f"{sys.executable} -m tuplet predict {folder / 'm.tuplet'} {folder / 'p.csv'} | head -1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stdout.startswith("species,island")
    assert done.stderr == ""


def test_targets_by_position_and_whole_numbers_with_gaps(tmp_path):
    (tmp_path / "t.csv").write_text(
        "x,grade\n" + "".join(f"{i},{i % 3 if i % 5 else ''}\n" for i in range(40))
    )
    run("fit", tmp_path / "t.csv", "-t", "-1", "-m", "independent", "-o", tmp_path / "m.tuplet")
    variable = json.loads(run("info", tmp_path / "m.tuplet", "--json").stdout)["variables"][0]
    assert (variable["name"], variable["labels"]) == ("grade", [0, 1, 2])
    assert "0.0" not in run("predict", tmp_path / "m.tuplet", tmp_path / "t.csv").stdout.splitlines()[1]


# -- groups and time ---------------------------------------------------------------------------------------


@pytest.fixture
def visits(tmp_path):
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(12), 8)
    frame = pd.DataFrame({"x": rng.normal(size=96), "patient": patient.astype(str)})
    frame["day"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.permutation(96), unit="D")
    frame["text"] = "soon"
    frame["sick"], frame["late"] = rng.integers(0, 2, size=(2, 96))
    path = tmp_path / "visits.csv"
    frame.to_csv(path, index=False)
    return str(path)


def test_fit_with_groups_and_by_time(visits, tmp_path):
    out = tmp_path / "model.tuplet"
    given = ("fit", visits, "--targets", "sick,late", "--out", out)
    run(*given, "--model", "tree", "--groups", "patient", "--ignore", "text,day")
    assert tuplet.load_model(out).feature_names_in_.tolist() == ["x"]
    result = run(*given, "--time", "day", "--ignore", "text,patient", "--time-budget", "0.5")
    model = tuplet.load_model(out)
    assert model.feature_names_in_.tolist() == ["x"]
    assert isinstance(model.cv, TimeSeriesSplit)
    assert "No time to compare" in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--groups", "nobody"), "--groups: .* has no column 'nobody'"),
        (("--time", "text"), "neither numbers nor dates"),
        (("--time", "day", "--groups", "patient"), "cannot be used together"),
        (("--time", "day", "--model", "chain"), "the model 'chain' has no parameter cv"),
    ],
)
def test_columns_of_groups_and_time_that_do_not_serve(visits, tmp_path, options, message):
    result = run(
        "fit", visits, "--targets", "sick,late", "--out", tmp_path / "model.tuplet", *options, code=1
    )
    assert re.search(message, " ".join(result.output.split()))


def test_compare_by_time(visits):
    targets = ("--targets", "sick,late", "--ignore", "text,patient", "--models", "prior", "--folds", "3")
    assert "3 folds" in run("compare", visits, *targets, "--time", "day").output
