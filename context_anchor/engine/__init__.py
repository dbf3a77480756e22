"""The durable engine: tool evidence, project memory and compaction for agent loops that we own."""
