"""From a verdict to the next step."""
