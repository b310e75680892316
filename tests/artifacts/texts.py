"""Hostile texts, and briefs of them."""

from __future__ import annotations

from hypothesis import strategies as st

from ecm_rules.artifacts.brief import Brief

PIECES = [
    "", " ", "a", "naïve", "日本語", "👩‍🚀", "\n", "\n\n", "\r", "\r\n", "\t", "\0", "\x1b[2J", "\x7f", "\x85", "\u2028", "\u2029", "\u202e",
    "\ud800", "\udc00", "\udce2\udc82", "\ufeff", "- ", "- anchor: ", "- symbol: ", "- decision: ", "---", "```", "~~~\n", "# Session Handoff Brief\n",
    "## Identifiers\n", "## Failed approaches\n", "## Next steps\n", "## Narrative\n\nTask state: ", "## Open variables\n",
    "## contains_tool_origin\n", "true\n", "false\n", "(none recorded)\n", '"', "\\", "{", "<!--BLOCK_ID:x-->", "<b>&amp;", "/etc/passwd:1",
]  # fmt: skip

hostile = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
# Surrogates too, which Hypothesis leaves out of texts unless it is told otherwise.
anything = hostile | st.text(st.characters(codec=None, exclude_categories=()), max_size=40)


def briefs(texts: st.SearchStrategy[str] = anything) -> st.SearchStrategy[Brief]:
    entries = st.lists(texts, max_size=3)
    return st.builds(Brief, texts, texts, entries, entries, entries, entries, entries, entries, st.booleans())
