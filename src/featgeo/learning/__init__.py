"""The two ways to maximise a nesting: in closed form from moments, and by gradients for networks."""
