"""What becomes of each weight of a file, by the layout that the file has."""
