"""What people register by hand: assets with their code, and flows."""
