"""Model families: wiring, options and presets."""
