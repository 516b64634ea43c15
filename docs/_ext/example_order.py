"""The order of the examples: from the first steps to what is special."""

from pathlib import Path

ORDER = (
    "penguins",
    "known_label",
    "costs_and_abstention",
    "pictures",
    "outlier_score",
    "comparing_models",
    "bayes_net_graph",
    "tree_mixture",
    "warehouse_worker",
    "probit_intervals",
)


class ReadingOrder:
    """Sort examples as they are listed, those that are not listed last."""

    def __init__(self, src_dir: str) -> None:
        self.src_dir = src_dir

    def __call__(self, filename: str) -> tuple[int, str]:
        """Return the place of an example."""
        name = Path(filename).stem
        return (ORDER.index(name) if name in ORDER else len(ORDER), name)

    def __repr__(self) -> str:
        return "ReadingOrder"
