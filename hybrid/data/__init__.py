"""Public data sets by name: which files they are, where they are public, and how they come to this machine."""
