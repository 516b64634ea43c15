"""Errors of a prediction speak of class variables by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

from tuplet.exceptions import TupletError

_Method = TypeVar("_Method", bound=Callable[..., Any])


def named(method: _Method) -> _Method:
    """Let a method's errors speak of class variables by name: below the rim only positions are known."""

    @wraps(method)
    def with_names(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return method(self, *args, **kwargs)
        except TupletError as error:
            if error.variable is None:
                raise
            name = (*self.space.names, "a hidden variable")[min(error.variable, self.space.n_variables)]
            raise type(error)(str(error).replace(f"variable {error.variable}", repr(name))) from None

    return cast(_Method, with_names)
