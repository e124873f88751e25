"""What is written, and what writes it."""
