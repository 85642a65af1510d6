"""Create missions: empty, or from tables, files and folders of labelled texts."""
