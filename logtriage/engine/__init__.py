"""Rules in, matches and an incident out. Knows nothing about terminals or processes."""
