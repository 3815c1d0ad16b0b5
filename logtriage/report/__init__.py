"""Reports: the record of an analysis as JSON, as text, and in the forms that other tools read."""
