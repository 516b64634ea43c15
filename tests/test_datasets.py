import numpy as np

from tuplet.datasets import load_penguins


def test_penguins():
    penguins = load_penguins()
    assert penguins.X.shape == (344, 5)
    assert penguins.Y.shape == (344, 3)
    assert list(penguins.Y.columns) == ["species", "island", "sex"]
    assert penguins.Y.nunique().tolist() == [3, 3, 2]
    assert penguins.Y["species"].value_counts().to_dict() == {"Adelie": 152, "Gentoo": 124, "Chinstrap": 68}
    assert all(np.issubdtype(dtype, np.number) for dtype in penguins.X.dtypes)


def test_missing_values_are_kept():
    penguins = load_penguins()
    assert penguins.Y.isna().sum().tolist() == [0, 0, 11]
    assert penguins.X.isna().sum().tolist() == [2, 2, 2, 2, 0]
    assert set(penguins.X.index[penguins.X.isna().any(axis=1)]) <= set(
        penguins.Y.index[penguins.Y["sex"].isna()]
    )


def test_each_call_gives_data_of_its_own():
    X, Y = load_penguins(return_X_y=True)
    Y.loc[0, "species"] = None
    X.loc[0] = 0
    again = load_penguins()
    assert again.Y.loc[0, "species"] == "Adelie"
    assert again.X.loc[0, "bill_length_mm"] == 39.1


def test_the_frame_has_everything_and_the_origin_is_told():
    penguins = load_penguins()
    assert penguins.frame.shape == (344, 8)
    assert "CC0" in penguins.description
    assert repr(penguins).startswith("Dataset(penguins: 344 rows")
