"""What runs inside a host's turn."""
