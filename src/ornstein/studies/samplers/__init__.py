"""Chen, Fox & Guestrin (2014), Mandt et al. (2017) and neighbours: Markov chains."""
