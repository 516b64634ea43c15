"""Features: columns of any kind become numbers here.

`inputs` reads X in any container. `FeatureEncoder` (in `encoding`) turns its columns into numbers, in two
steps: `reading` decides what each column is and makes numbers or categories of it, by way of `numerals`,
`dates`, `texts` and `rates`; `matrix` makes numbers of categories (`nominal`) and fills gaps. `discrete`
turns columns into codes. `estimators` determines which form of X a classifier takes.
"""

__all__: list[str] = []
