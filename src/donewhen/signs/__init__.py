"""Signs in changed code that a person should look at: pure functions of the texts before and after a change."""
