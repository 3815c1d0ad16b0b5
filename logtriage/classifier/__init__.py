"""What went wrong where no rule knows the line: features of a log's evidence, a linear model, its training."""
