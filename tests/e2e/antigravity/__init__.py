"""What drives the real Antigravity runtime: driver, stub model, calls of the plugin's hooks."""
