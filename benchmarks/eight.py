"""Eight models on eight data sets, killed half-way and continued.

Five models of ours and three peers, three iterative-stratified folds, two fits at a time. The run is started,
killed without warning (SIGKILL) when half of its fits are on disk, and started again; the second run must not
repeat a finished fit.

    TUPLET_DATA=folder/of/sets python benchmarks/run.py eight
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from sklearn.ensemble import ExtraTreesClassifier

from benchmark_sets import load_benchmarks
from tuplet import ChainClassifier, IndependentClassifier, PowersetClassifier, PriorClassifier
from tuplet.core.progress import duration_text
from tuplet.evaluate import Comparison, compare, default_peers

CACHE = Path(__file__).parent / "cache" / "eight"
SETS = ("emotions", "flags", "birds", "image", "scene", "yeast", "Rf1", "Adult")
PEERS = ("RandomForest", "kNN", "10 averaged chains")
SCORES = ("exact_match", "hamming_score", "macro_f1", "joint_log_likelihood", "marginal_log_likelihood")
N_FITS = 8 * 8 * 3


def study() -> Comparison:
    """Run the comparison, or what is left of it."""
    trees = ExtraTreesClassifier(100)
    peers = default_peers()
    models = {
        "prior": PriorClassifier(),
        "independent": IndependentClassifier(),
        "chain": ChainClassifier(),
        "powerset": PowersetClassifier(),
        "powerset, extra trees": PowersetClassifier(trees),
        **{name: peers[name] for name in PEERS},
    }
    sets = load_benchmarks(*SETS)
    return compare(models, sets, cv=3, scores=SCORES, n_jobs=2, cache=CACHE, time_limit=300, progress=True)


def written() -> dict[Path, float]:
    """Return the finished fits on disk and when each was written."""
    return {path: path.stat().st_mtime for path in CACHE.glob("*/*.json")}


def kill_half_way() -> dict[Path, float]:
    """Start the study in another process, kill it when half of the fits are there, and return these."""
    run = subprocess.Popen([sys.executable, __file__, "--study"], env=os.environ)
    while run.poll() is None and len(written()) < N_FITS // 2:
        time.sleep(0.2)
    run.send_signal(signal.SIGKILL)
    run.wait()
    return written()


def main() -> None:
    """Print the tables and what became of the fits that were there before."""
    if "--study" in sys.argv:
        study()
        return
    shutil.rmtree(CACHE, ignore_errors=True)
    start = time.monotonic()
    before = kill_half_way()
    result = study()
    seconds = time.monotonic() - start
    after = written()
    repeated = sum(after[path] != when for path, when in before.items())
    print(
        f"{len(result.runs)} fits in {duration_text(seconds)} of wall time, both runs together; killed with"
        f" {len(before)} fits on disk, of which {repeated} were made again.\n"
    )
    for score in ("exact_match", "joint_log_likelihood"):
        print(f"**{score.replace('_', ' ')}**\n\n{result.to_markdown(score)}\n")
        print(f"{result.tests.friedman(score)}. {result.tests.nemenyi(score)}.\n")
    result.to_html(CACHE / "page.html", title="Eight models on eight data sets")


if __name__ == "__main__":
    main()
