"""New missions: made from tables, files and folders of labelled texts, or empty."""
