"""Features: columns of any kind become numbers here.

`inputs` reads X in any container, `FeatureEncoder` (in `encoding`) turns columns into numbers, `discrete`
into codes (both by `nominal`, the values of one column), and `columns` and `estimators` determine which form
of X a classifier takes.
"""

__all__: list[str] = []
