"""The dense part of a model, between the input rows and the readout: one file a kind."""
