"""Binary trees over classes: shape, nodes that learn, search, growth."""
