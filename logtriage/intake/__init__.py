"""Bytes in, lines and events out. Knows how logs are laid out, not what their messages mean."""
