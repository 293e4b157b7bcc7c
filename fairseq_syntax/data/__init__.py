"""Reading and writing the arrays that stand beside the tokens, and the dataset that batches both."""
