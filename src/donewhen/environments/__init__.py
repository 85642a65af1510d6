"""What a program could load besides the files of its project: interpreters, packages, programs, by their content."""
