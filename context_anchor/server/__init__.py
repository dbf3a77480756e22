"""The MCP server `anchors`: typed tool functions, their listing, and the one file that imports mcp."""
