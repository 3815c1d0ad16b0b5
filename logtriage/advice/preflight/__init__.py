"""Judges a command and the machine it would run on, before anything is launched. Pure: it looks at records only."""
