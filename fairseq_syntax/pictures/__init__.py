"""Drawing of trees, graphs and heat maps as SVG, PNG and PDF, without models and data sets."""
