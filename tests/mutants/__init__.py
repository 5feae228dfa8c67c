"""The mutation score: small faults are planted in the sources, one at a time; tests should fail. See README.md."""
