"""Commands about changes: impact, gate and fix."""
