"""What nodes cost and how much of it was used."""
