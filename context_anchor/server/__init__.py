"""The MCP server `anchors`: tool functions, their listing, and the protocol."""
