"""Examples of property tests: the same in every `make test`, more and fresh ones in `make test-fresh`."""

import os

from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

FRESH = bool(os.environ.get("TUPLET_FRESH"))
_FACTOR = 8 if FRESH else 1


def examples(n, *, derandomize=not FRESH, **options):
    """Settings of a test that draws n examples in `make test` and more in `make test-fresh`.

    With derandomize=True these are the same n examples everywhere, for tests that may fail by chance.
    """
    return settings(max_examples=n if derandomize else n * _FACTOR, derandomize=derandomize, **options)


def load_profile():
    """Set the defaults of all property tests, whatever the variable CI, which hypothesis reads, is set to.

    There is neither a deadline nor the health check for slow strategies: both depend on the machine's load.
    """
    settings.register_profile(
        "tuplet",
        max_examples=25 * _FACTOR,
        derandomize=not FRESH,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("tuplet")
    if not FRESH and hasattr(providers, "_get_local_constants"):
        # Hypothesis also draws constants found in the source of all loaded modules, so that examples would
        # depend on the tests that the same process ran before.
        providers._get_local_constants = lambda: providers._local_constants
