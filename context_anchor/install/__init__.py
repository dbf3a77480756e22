"""Installing for each host, the private environment, doctor and demo."""
