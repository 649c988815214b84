"""How often: fewer values for a screen, fewer events for a wire, an even pace for a reader."""
