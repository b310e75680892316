// ecm-rules for pi: written by `ecm-rules install`, taken out by `ecm-rules remove`; edits are lost.
const COMMAND: string[] = ["ecm-hook", "pi"];
