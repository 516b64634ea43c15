"""Tables as spreadsheets of several countries write them, from the file to the page, and files of other kinds."""

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


def run(*arguments, code=0):
    result = runner.invoke(app, [str(each) for each in arguments])
    assert result.exit_code == code, result.output + str(result.exception)
    return result


def fit(path, folder, *options):
    targets = () if path.suffix == ".arff" else ("-t", TARGETS)
    given = ("-m", "independent", "-e", "naive-bayes", "-o", folder / "m.tuplet")
    return run("fit", path, *targets, *given, *options)


@pytest.fixture(scope="module")
def expected():
    """Predictions of a model of the table itself."""
    frame = odd_files.truth()
    X, Y = frame.drop(columns=odd_files.TARGETS), frame[odd_files.TARGETS]
    model = tuplet.IndependentClassifier(tuplet.MixedNaiveBayes()).fit(X, Y)
    return model.predict_joint(X).marginals()


def lines(text):
    return [line for line in text.splitlines() if line.startswith(("warning", "error"))]


@pytest.mark.parametrize("name", [*odd_files.TABLES, "table_us.xlsx"])
def test_a_table_from_the_file_to_the_page(name, expected, tmp_path):
    if name.endswith(".xlsx") and importlib.util.find_spec("openpyxl") is None:
        path = odd_files.write(tmp_path, name)
        result = run("fit", path, "-t", TARGETS, code=1)
        assert "a workbook of Excel, which needs openpyxl" in result.stderr
        return
    path = odd_files.write(tmp_path, name)
    odd = odd_files.WORKBOOK if name.endswith(".xlsx") else odd_files.TABLES[name]
    fitted = fit(path, tmp_path, *odd.options)
    assert odd.warning in " ".join(lines(fitted.stderr))
    assert len(lines(fitted.stderr)) == bool(odd.warning)
    model = tuplet.load_model(tmp_path / "m.tuplet")
    summary = model.encoder_.summary().set_index("column")
    assert summary.loc[odd_files.NUMBERS, "kind"].eq("number").all(), summary
    assert summary.loc[["city", "seen"], "kind"].tolist() == ["category", "date"]
    predicted = run("predict", tmp_path / "m.tuplet", path, "--all-labels", *odd.options)
    answer = pd.read_csv(io.StringIO(predicted.stdout), keep_default_na=False)
    assert len(answer) == odd_files.N
    if not odd.changed:
        for variable, chances in expected.items():
            for label in chances:
                np.testing.assert_allclose(answer[f"P({variable}={label})"], chances[label], atol=2e-6)
    scores = json.loads(run("evaluate", tmp_path / "m.tuplet", path, "--json", *odd.options).stdout)
    assert scores["rows"] == odd_files.N
    assert scores["accuracy"]["kind"] > 0.5
    run("report", tmp_path / "m.tuplet", path, "-o", tmp_path / "page.html", *odd.options)
    assert "groß" in (tmp_path / "page.html").read_text()
