"""Tools for people who work on rules: why a rule fired, and whether the rules keep their laws."""
