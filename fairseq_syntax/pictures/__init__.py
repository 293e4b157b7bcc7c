"""Drawing: trees, arcs and heat maps as SVG, PNG and PDF. No model, no data set."""
