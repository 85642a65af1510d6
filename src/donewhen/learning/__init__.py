"""How a judge gets better: guidance is learned in writing, from labelled tickets, with evidence for every rule."""
