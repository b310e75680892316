// ecm-rules for OpenCode: written by `ecm-rules install`, taken out by `ecm-rules remove`; edits are lost.
const COMMAND = ["ecm-hook", "opencode"];
