"""One module per host: payloads, transcript lines, outputs, limits."""
