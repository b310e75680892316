"""The hook as a whole process, beside a bare interpreter that imports json."""

from __future__ import annotations

import compileall
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable

import timing

import ecm_rules

ROOT = pathlib.Path(__file__).parent.parent
PAYLOADS = ROOT / "fixtures/hosts/claude-code"
TRANSCRIPTS = {
    size: ROOT / "fixtures/transcripts" / name
    for size, name in (("130 kB", "01_claude_small.jsonl"), ("880 kB", "02_claude_compact_boundary.jsonl"))
}
HOOK = pathlib.Path(sys.executable).parent / "ecm-hook"


def process(command: list[str], folder: str, data: bytes = b"") -> Callable[[], object]:
    return lambda: subprocess.run(command, cwd=folder, input=data, check=True, capture_output=True)


def main() -> int:
    options = timing.arguments(__doc__)
    # An installed package has its bytecode; a checkout that was never run may not.
    compileall.compile_dir(os.path.dirname(ecm_rules.__file__), quiet=1)
    statusline = (PAYLOADS / "statusline.after-turn.json").read_bytes()
    start, prompt, tool = (
        json.loads((PAYLOADS / f"{name}.json").read_text())
        for name in ("SessionStart.startup", "UserPromptSubmit", "PostToolUse")
    )
    python, hook = [sys.executable], [str(HOOK), "claude-code"]
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "fixtures/project", folder, dirs_exist_ok=True)
        for begun in (start, prompt | {"transcript_path": str(TRANSCRIPTS["880 kB"])}):
            # The pins are in the window, meter, log and ledger are there, and what was entered has been carried out.
            session = {"session_id": prompt["session_id"]}
            process(hook, folder, json.dumps(begun | session).encode())()
        contenders = {
            "python -c pass": process([*python, "-c", "pass"], folder),
            "python -c 'import json'": process([*python, "-c", "import json"], folder),
            "ecm-hook, a statusline": process(hook, folder, statusline),
            **{
                f"ecm-hook, {what} with a transcript of {size}": process(
                    hook,
                    folder,
                    json.dumps(given | {"session_id": prompt["session_id"], "transcript_path": str(path)}).encode(),
                )
                for size, path in TRANSCRIPTS.items()
                for what, given in (("a prompt", prompt), ("a tool's result", tool))
            },
        }
        medians = timing.rounds(contenders, 60 if options.quick else 300)
    yardstick = "python -c 'import json'"
    yardsticks = {name: yardstick for name in contenders if name != yardstick}
    timing.report("the hook, as a process", timing.figures(medians, yardsticks, "ms", 1e3), options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
