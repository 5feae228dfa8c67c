"""The Predictive Vision Model: a hierarchy of small units, each learning to predict its own input."""
