"""What people register by hand, and lists of what a store contains."""
