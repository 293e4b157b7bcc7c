"""Arrays of syntax, stored beside fairseq's token files, and the dataset that batches both."""
