"""Pure judgement of token pressure and compaction."""
