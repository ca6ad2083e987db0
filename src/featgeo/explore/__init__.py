"""A whole table at once: files of any size, all pairs of columns from one set of counts."""

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from featgeo.explore.exploration import Exploration
    from featgeo.explore.run import explore

__all__ = ["Exploration", "explore"]


class _Room(ModuleType):
    """Python gives `featgeo.explore`, the function, the meaning of this room once anything of it is imported.

    So it answers calls as the function does.
    """

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self.explore(*args, **options)


sys.modules[__name__].__class__ = _Room


def __getattr__(name: str) -> Any:
    """Import what explores when it is first used: files are opened, and refused, without torch."""
    if name not in __all__:
        raise AttributeError(f"module 'featgeo.explore' has no attribute {name!r}")
    from featgeo.explore import run

    globals()[name] = value = getattr(run, name)
    return value
