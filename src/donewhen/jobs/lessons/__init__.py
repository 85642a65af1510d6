"""What earlier jobs learned: the file, the search, and what each job made of the lessons it was given."""
