"""Neural modules. They import `trees` and fairseq's layers, no model, task or data."""
