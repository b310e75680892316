"""Install the clients at their pinned versions into $ECM_HOSTS_DIR: python -m e2e.harness.setup [HOST…]

What is there already stays. A client that cannot be installed here is named, and the others are installed still.
"""

from __future__ import annotations

import json
import os
import pathlib
import platform
import shutil
import subprocess
import sys

from e2e.harness.clients import CLIENTS, NODE


def hosts_dir() -> pathlib.Path:
    """The folder of the clients, 2 GB for all of them."""
    given = os.environ.get("ECM_HOSTS_DIR")
    return pathlib.Path(given).resolve() if given else pathlib.Path.home() / ".cache/ecm-hosts"


def node() -> pathlib.Path:
    """The folder of the Node that clients and npm run on."""
    return hosts_dir() / "node/node_modules" / NODE[0] / "bin"


def missing(host: str) -> str | None:
    """Why a client cannot be run; None: it can."""
    client = CLIENTS[host]
    if not (hosts_dir() / host / "node_modules" / client.program).exists():
        return f"{client.package} is not installed; run `make e2e-hosts HOST={host}` where npm is"
    found = _version(host, client.package)
    return None if found == client.version else f"{client.package} is {found}, not {client.version}"


def install(folder: str, package: str, version: str) -> str | None:
    """Install a package into a folder of its own; what went wrong, or None."""
    if _version(folder, package) == version:
        return None
    path = hosts_dir() / folder
    path.mkdir(parents=True, exist_ok=True)
    (path / "package.json").write_text('{"private": true}')
    # Under an older Node, npm leaves out packages that ask for a newer one, without a word.
    environment = {**os.environ, "PATH": f"{node()}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = ["npm", "install", "--prefix", str(path), "--save-exact", "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        done = subprocess.run(
            [*command, f"{package}@{version}"], env=environment, capture_output=True, text=True, check=False
        )
    except OSError as error:
        return f"npm: {error.strerror}"
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["npm failed"])[-1]


def _version(folder: str, package: str) -> str | None:
    try:
        document = json.loads((hosts_dir() / folder / "node_modules" / package / "package.json").read_text())
    except (OSError, ValueError):
        return None
    return str(document["version"])


def main(hosts: list[str]) -> int:
    """0; 2 on an unknown host. A client that is not there is skipped by the tests, and they say so."""
    unknown = [host for host in hosts if host not in CLIENTS]
    if unknown:
        print(f"unknown host {unknown[0]!r}, known: {', '.join(CLIENTS)}", file=sys.stderr)
        return 2
    if (platform.system(), platform.machine()) != ("Linux", "x86_64") or shutil.which("npm") is None:
        print("the pinned clients are for Linux on x86-64, and npm installs them", file=sys.stderr)
        return 0
    wanted = [("node", *NODE), *((host, CLIENTS[host].package, CLIENTS[host].version) for host in hosts or CLIENTS)]
    for folder, package, version in wanted:
        trouble = install(folder, package, version)
        print(f"{package} {version}: {trouble or 'is there'}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
