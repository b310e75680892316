"""A client per test, with a home of its own, and a project that is configured. `--host` selects clients."""

from __future__ import annotations

import pathlib
from collections.abc import Iterator

import pytest

from e2e.harness import runner, setup
from e2e.harness.clients import CLIENTS
from e2e.project import Project


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--host", action="append", choices=list(CLIENTS), help="only these clients")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the hosts that were not asked for."""
    wanted = config.getoption("--host") or list(CLIENTS)
    items[:] = [item for item in items if _host(item) in (None, *wanted)]


def _host(item: pytest.Item) -> str | None:
    given = getattr(item, "callspec", None)
    return given.params.get("host") if given is not None else None


@pytest.fixture
def project(host: str, tmp_path: pathlib.Path) -> Iterator[Project]:
    """A configured project in which nothing is installed yet, and the client that runs there."""
    why = setup.missing(host)
    if why is not None:
        pytest.skip(why)
    with runner.session(host, tmp_path / host) as session:
        yield Project.make(session)
