"""One module a reader of transcripts: `feed(tally, record)` counts a record of its format. Part of the runtime ring."""
