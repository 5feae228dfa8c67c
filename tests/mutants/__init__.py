"""The mutation score: small faults are planted in the sources, one at a time, and tests should fail."""
