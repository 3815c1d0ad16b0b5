"""The command line: one small module for each command, imported only when it is called."""
