"""What happened in a session, whichever client wrote it down: a reader a client gives the same records.

A reader is a function of the lines of a transcript (bytes, with or without LF) that yields a `Record` for each event,
in order, those of subagents among them. What it cannot read it passes over. Names of tools and of their arguments are
data, in rules/hosts.yaml; a reader knows how its client nests what happened.
"""

from __future__ import annotations

from ecm_rules.kernel.records.model import ASSISTANT, TOOL, USER, Call, Record
from ecm_rules.kernel.records.reading import READERS, Reader, recognise

claude_code = READERS["claude-code"]

__all__ = ["ASSISTANT", "READERS", "TOOL", "USER", "Call", "Reader", "Record", "claude_code", "recognise"]
