"""Text, raw or in tokens, made into trees and data directories: what `parse` and `preprocess` do."""
