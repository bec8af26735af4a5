"""Arguments by name, as scikit-learn reads, sets and copies them."""

from typing import Any, ClassVar, Self

from reticent.errors import PlanError


class Params:
    """Whatever keeps its arguments as they were given; they are checked when it is fitted."""

    _NAMES: ClassVar[tuple[str, ...]]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The arguments it was made with."""
        return {name: getattr(self, name) for name in self._NAMES}

    def set_params(self, **params: Any) -> Self:
        """Change arguments by name."""
        for name, value in params.items():
            if name not in self._NAMES:
                raise PlanError(f"{type(self).__name__} has no argument {name[:80]!r}", field="set_params")
            setattr(self, name, value)
        return self
