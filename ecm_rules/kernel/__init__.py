"""The kernel: meter, files, and what operations do. Importing it imports nothing; docs/design.md has its modules."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ecm_rules.kernel.operations import run

__all__ = ["run"]

# Hidden from type checkers, which would otherwise take any name for one of ours.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name != "run":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return import_module(f"{__name__}.operations").run
