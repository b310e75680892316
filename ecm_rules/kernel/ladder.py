"""From what is told and what a transcript says to the meter, best first. ECM §"The meter + zone ladder".

Part of the runtime ring. One number, one basis, and the basis is named: the client's own reading in a payload; the
usage record that it wrote into its transcript after the last boundary; what that boundary says; bytes of content; the
reading before, where it still stands; else unknown.
"""

import os

from ecm_rules.engine import program as engine
from ecm_rules.kernel import earlier, meter, payloads, transcripts
from ecm_rules.kernel.earlier import positive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ecm_rules.kernel.chain import Chain
    from ecm_rules.kernel.payloads import Told
    from ecm_rules.kernel.tally import Tally

    Reading = tuple[float | None, float | None, str, str, str | None]

# Of a client's percentage and its tokens, as far apart as rounding a percentage can put them.
_ROUNDING = 0.01


def measure(
    programs: "dict[str, Any]",
    told: "Told",
    tally: "Tally | None",
    before: "dict[str, Any] | None" = None,
    *,
    ceiling: "int | None" = None,
    default_window: "int | None" = None,
    externalized_at: "str | None" = None,
) -> "dict[str, Any]":
    """The meter of what is told and what was counted of the transcript, None where there is none to be read.

    programs: {"program", "formats", "models", "window_tokens"?}. before: the session's meter so far, as it was found;
    what is kept of it is checked. default_window: where nobody knows the window. externalized_at: when the session was
    last written down, ISO 8601 in UTC.
    """
    program, before = programs["program"], before or {}
    chain = None if tally is None else _chain(tally, told.agent is not None)
    window, window_basis = _window(programs, told, chain, before, default_window)
    used, utilization, source, basis, read_at = _reading(programs, told, tally, chain, before, window)
    kept = _kept(program, before)
    if tally is None or chain is None or tally.format is None:
        compactions, share, spent = (kept["compaction_count"] or 0) + told.compacted, None, kept["spent"]
    else:
        compactions, share = chain.compactions, chain.share()
        spent = tally.spent(program["limits"]["cache_read_weight"])
        if tally.partial:  # what stands before the part that was read happened all the same
            compactions, spent = max(compactions, kept["compaction_count"] or 0), max(spent, kept["spent"] or 0)
    return meter.compose(
        program,
        told.session,
        None if used is None else int(used),
        window,
        source,
        basis,
        utilization=utilization,
        window_basis=window_basis,
        share=kept["tool_result_share"] if share is None else share,
        compactions=compactions,
        age=_age(chain, before, externalized_at),
        read_at=read_at,
        ceiling=ceiling,
        spent=spent,
    )


def tally_of(
    programs: "dict[str, Any]", path: "str | None", limit: "int | None" = None, state: "tuple[str, str] | None" = None
) -> "tuple[Tally | None, str | None]":
    """What `transcripts.read` gives, and a complaint. A transcript that is not there yet is no fault."""
    if not path or not os.path.lexists(path):
        return None, None
    try:
        return transcripts.read(path, programs, limit, state), None
    except OSError as error:
        return None, f"transcript: {error.strerror or error}"


def reading(
    tally: "Tally", chain: "Chain", program: "dict[str, Any]", formats: "dict[str, Any]"
) -> "tuple[int | None, str, str]":
    """(used tokens or None, source, basis) by a transcript alone, from the host's own record down to an estimate."""
    limits = program["limits"]
    partly = ", partial" if tally.partial else ""
    if chain.used is not None:
        return chain.used, "host", f"usage record{partly}"
    if chain.post_tokens is not None:
        return chain.post_tokens, "host", f"compaction boundary{partly}"
    if tally.unread is not None:
        return None, "unknown", tally.unread
    if tally.partial:  # what stands before is in the window as well
        return None, "unknown", "no usage record near the end"
    if chain.messages and tally.format is not None:
        content = chain.sizes["text"] + chain.sizes["tool_call"] + chain.sizes["tool_result"] + chain.carried
        tokens = int(content / limits["bytes_per_token"]) + chain.images * limits["image_tokens"]
        basis = "content bytes, partial" if chain.cut else "content bytes"
        return tokens + formats[tally.format]["overhead_tokens"], "transcript_heuristic", basis
    if tally.format is not None or not tally.size:
        return None, "unknown", "no messages yet"
    return int(tally.size / limits["bytes_per_token"]), "transcript_heuristic", "file bytes"


def model_window(models: "dict[str, int]", model: object) -> "int | None":
    """The window of a model in tokens, by the longest prefix of its name in the table `models`; None unknown."""
    if model.__class__ is not str:
        return None
    known = [prefix for prefix in models if model.startswith(prefix)]
    return models[max(known, key=len)] if known else None


def _chain(tally: "Tally", agent: bool) -> "Chain":
    """The chain of who asks. That a file is a subagent's own, its end alone does not tell."""
    if agent and tally.side.messages:
        return tally.side
    return tally.main if tally.partial else tally.chain()


def _window(
    programs: "dict[str, Any]",
    told: "Told",
    chain: "Chain | None",
    before: "dict[str, Any]",
    default: "int | None",
) -> "tuple[float | None, str | None]":
    """The window in tokens, and by whom: given, the project's, the client's word, the model's entry, a default."""
    configured = programs.get("window_tokens")
    if configured and told.window_basis != payloads.GIVEN:
        return configured, "project"
    if told.window:
        return told.window, told.window_basis
    if chain is not None and chain.window:
        return chain.window, "client"
    earlier = positive(before.get("window_tokens")) if before.get("window_basis") == "client" else None
    if earlier is not None:
        return earlier, "client"
    by_model: float | None = model_window(programs["models"], (chain and chain.model) or told.model)
    if by_model is None and before.get("window_basis") == "model":
        by_model = positive(before.get("window_tokens"))
    return (by_model, "model") if by_model else (default, "default")


def _reading(
    programs: "dict[str, Any]",
    told: "Told",
    tally: "Tally | None",
    chain: "Chain | None",
    before: "dict[str, Any]",
    window: "float | None",
) -> "Reading":
    """(used tokens, utilization where it is known without them, source, basis, when it was read if not now)."""
    if told.used_percentage is not None:
        return _percentage(told.used_percentage / 100, told.used, window)
    if told.used:
        return told.used, None, "host", "client's reading", None
    basis = "no reading"
    if tally is not None and chain is not None:
        used, source, basis = reading(tally, chain, programs["program"], programs["formats"])
        if used is not None:
            return used, None, source, basis, None
    if told.used_elsewhere:
        return told.used_elsewhere, None, "host", "client's reading", None
    found = earlier.reading(programs["program"]["limits"], before, told, tally, chain, window)
    if isinstance(found, earlier.Reading):
        return found.used, found.utilization, found.source, "earlier reading", found.at
    return None, None, "unknown", f"{basis}; {found}" if found else basis, None


def _percentage(utilization: float, used: "float | None", window: "float | None") -> "Reading":
    """The client's percentage, which a client that divides by a wrong window pins at 100: its tokens tell."""
    if used and window and used > window:
        return used, None, "host", "client's reading", None
    if window and not (used and abs(used / window - utilization) <= _ROUNDING):
        used = round(window * utilization)
    return used, utilization, "host", "client's reading", None


def _kept(program: "dict[str, Any]", before: "dict[str, Any]") -> "dict[str, Any]":
    values, missing, _ = engine.read(program, before)
    return {name: None if name in missing else value for name, value in values.items()}


def _age(chain: "Chain | None", before: "dict[str, Any]", externalized_at: "str | None") -> int:
    if chain is not None and chain.turns:
        return chain.turns_since(externalized_at)
    return int(positive(before.get("externalize_age_turns")) or 0)
