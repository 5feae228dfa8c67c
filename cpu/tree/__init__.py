"""Binary trees over classes: shape, logistic regressions at the nodes, search, growth."""
