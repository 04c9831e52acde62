"""What each weight of a file becomes, by the layout of the file."""
