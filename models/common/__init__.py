"""What models of this catalogue are made of: labelled levels, members of a level, repeats, campaigns, a likelihood."""
