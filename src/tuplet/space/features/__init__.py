"""Features: columns of any kind become numbers here.

`inputs` reads X in any container, `FeatureEncoder` (in `encoding`) turns columns into numbers, `discrete`
into codes, and `columns` and `estimators` decide which form of X a classifier is given.
"""

__all__: list[str] = []
