"""A sweep: one model trained under many options, compared in one table and one picture."""
