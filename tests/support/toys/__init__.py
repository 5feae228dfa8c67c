"""A readout, a trunk and a model of the smallest kind, as another distribution would offer them: one file each."""
