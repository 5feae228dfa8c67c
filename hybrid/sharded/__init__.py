"""Tables and trees whose rows are shared out to ranks, for models that exceed one rank's memory; the numbers of one rank."""
