"""Pacing: fewer values for a screen, fewer events for a wire, an even pace for people who read along."""
