"""The algorithms, one readable file each, and the mathematics they share."""
