"""Tables as spreadsheets of several countries write them, from the file to the page; files of other kinds."""

import importlib.util
import io
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import odd_files
import tuplet
from tuplet.surface.cli.app import app

runner = CliRunner()
TARGETS = ",".join(odd_files.TARGETS)
DRAWN = ("excel_de.csv",)
"""Files whose pages are made with all pictures; those take a second each."""


def run(*arguments, code=0):
    result = runner.invoke(app, [str(each) for each in arguments])
    assert result.exit_code == code, result.output + str(result.exception)
    return result


def remarks(result):
    return [line for line in result.stderr.splitlines() if line.startswith(("warning", "error"))]


def fit(path, *options):
    targets = () if path.suffix == ".arff" else ("-t", TARGETS)
    given = ("-m", "independent", "-e", "naive-bayes", "-o", path.with_name("m.tuplet"))
    return run("fit", path, *targets, *given, *options)


@pytest.fixture(scope="module")
def expected():
    """Predictions of a model of the table itself."""
    frame = odd_files.truth()
    X, Y = frame.drop(columns=odd_files.TARGETS), frame[odd_files.TARGETS]
    model = tuplet.IndependentClassifier(tuplet.MixedNaiveBayes()).fit(X, Y)
    return model.predict_joint(X).marginals()


@pytest.mark.parametrize("name", [*odd_files.TABLES, "table_us.xlsx"])
def test_a_table_from_the_file_to_the_page(name, expected, tmp_path, monkeypatch):
    path, odd = odd_files.write(tmp_path, name), odd_files.TABLES.get(name, odd_files.WORKBOOK)
    if path.suffix == ".xlsx" and importlib.util.find_spec("openpyxl") is None:
        [sentence] = remarks(run("fit", path, "-t", TARGETS, code=1))
        assert "is a workbook of Excel, which needs openpyxl" in sentence
        return
    seen = remarks(fit(path, *odd.options))
    assert len(seen) == bool(odd.warning)
    assert odd.warning in "".join(seen)
    model = tuplet.load_model(tmp_path / "m.tuplet")
    kinds = model.encoder_.summary().set_index("column")["kind"]
    assert kinds[odd_files.NUMBERS].eq("number").all(), kinds
    assert kinds[["city", "seen"]].tolist() == ["category", "date"]
    given = (tmp_path / "m.tuplet", path, *odd.options)

    answer = pd.read_csv(io.StringIO(run("predict", *given, "--all-labels").stdout))
    assert len(answer) == odd_files.N
    for variable, chances in expected.items():
        for label in chances:
            difference = np.abs(answer[f"P({variable}={label})"] - chances[label]).max()
            assert difference < 2e-6 or odd.changed
    scores = json.loads(run("evaluate", *given, "--json").stdout)
    assert scores["rows"] == odd_files.N
    assert scores["accuracy"]["kind"] > 0.7

    if name not in DRAWN:
        monkeypatch.setattr(tuplet.JointClassifier, "report", written_out)
    run("report", *given, "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "groß" in page
    assert all(column in page for column in odd_files.NUMBERS)


def written_out(model, path, X, Y):
    """Take the place of a page: the rows and labels that it would be about."""
    assert not set(Y["kind"]) - {"groß", "été", "plain"}
    pd.concat([model.encoder_.read(X), Y], axis=1).to_csv(path)


@pytest.mark.parametrize("name", odd_files.OTHERS)
def test_files_of_other_kinds_are_named(name, tmp_path):
    path = odd_files.write(tmp_path, name)
    [sentence] = remarks(run("fit", path, "-t", "kind", "-o", tmp_path / "m.tuplet", code=1))
    assert odd_files.OTHERS[name][1] in sentence
    assert "This is a bug" not in sentence
    assert not (tmp_path / "m.tuplet").exists()


# -- options -----------------------------------------------------------------------------------------------


def test_columns_of_numbers_are_shown_and_can_be_kept_as_text(tmp_path):
    path = odd_files.write(tmp_path, "excel_de_sep.csv")
    shown = " ".join(fit(path).output.split())
    for line in (
        "Text that is read as numbers (--column NAME=category keeps it)",
        "size decimal comma",
        "share decimal comma, percent",
        "price decimal comma, points between thousands, €",
        "is read as",
    ):
        assert line in shown, shown
    known = json.loads(run("info", path, "--json").stdout)["features"]["size"]
    assert (known["type"], known["written"]) == ("numeric text", "decimal comma")
    kept = fit(path, "--column", "share=category", "--column", "count=decimal point").output
    assert "share" not in kept
    model = tuplet.load_model(tmp_path / "m.tuplet")
    kinds = model.encoder_.summary().set_index("column")["kind"]
    assert kinds[["share", "count"]].tolist() == ["category", "number"]
    wrong = run("fit", path, "-t", TARGETS, "-m", "prior", "--column", "share=drop", code=1)
    assert "--column: the model 'prior' does not use the columns" in wrong.stderr
    assert "expected name=kind" in run("fit", path, "-t", TARGETS, "--column", "share", code=1).stderr


@pytest.fixture
def countries(tmp_path):
    """A table in which NA is a country, and a gap in a column of numbers."""
    rows = [f"{i if i % 5 else 'NA'},{'NA' if i % 3 else 'DE'},{'a' if i % 2 else 'b'}" for i in range(30)]
    path = tmp_path / "countries.csv"
    path.write_text("\n".join(["x,country,kind", *rows]))
    return path


def test_na_is_a_label_if_the_options_say_so(countries):
    given = ("-t", "country,kind", "-m", "independent", "-e", "naive-bayes")
    model = countries.with_name("m.tuplet")
    [remark] = remarks(run("fit", countries, *given, "-o", model))
    assert "'country' has one label only, 'DE' and 20 missing values" in remark
    assert "such as NA, give --missing." in remark
    assert not remarks(run("fit", countries, *given, "--missing", "country=", "-o", model))
    assert tuplet.load_model(model).space_.categories[0].tolist() == ["DE", "NA"]
    scores = json.loads(run("evaluate", model, countries, "--json").stdout)
    assert scores["accuracy"]["country"] > 0.6, "labels of the model are no gaps"
    answer = pd.read_csv(
        io.StringIO(run("predict", model, countries, "--use-labels").stdout), keep_default_na=False
    )
    assert answer["country"].value_counts().to_dict() == {"NA": 20, "DE": 10}


def test_texts_for_missing_values_may_be_others(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(
        "x,y\n" + "".join(f"{i if i % 4 else '-'},{'k.A.' if i % 5 == 0 else i % 2}\n" for i in range(20))
    )
    answer = json.loads(run("info", path, "-t", "y", "--json", "--missing", "-", "--missing", "k.A.").stdout)
    assert answer["features"]["x"]["missing"] == 5
    assert answer["class_variables"]["y"]["missing"] == 4
    assert answer["features"]["x"]["type"] == "numeric"


def test_an_encoding_that_does_not_exist_or_fit(tmp_path):
    path = odd_files.write(tmp_path, "excel_de.csv")
    unknown = run("fit", path, "-t", TARGETS, "--encoding", "klingon", code=1).stderr
    assert "encoding='klingon' is not known; use utf-8, utf-16, cp1252" in " ".join(unknown.split())
    wrong = run("fit", path, "-t", TARGETS, "--encoding", "utf-8", code=1).stderr
    assert "this is not text in utf-8; change --encoding." in " ".join(wrong.split())


def test_rows_to_predict_may_come_from_another_country(tmp_path):
    """A model of plain numbers predicts a table with decimal commas."""
    frame = odd_files.truth()[["size", "count", "balance", *odd_files.TARGETS]]
    frame.to_csv(tmp_path / "plain.csv", index=False)
    fit(tmp_path / "plain.csv")
    written = odd_files.GERMAN.cells()[list(frame)]
    written.to_csv(tmp_path / "german.csv", index=False, sep=";")
    answers = [
        run("predict", tmp_path / "m.tuplet", tmp_path / f"{name}.csv").stdout for name in ("plain", "german")
    ]
    assert answers[0] == answers[1]
