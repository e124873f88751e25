"""Studies of how near a method's predictive distribution is to the posterior's."""
