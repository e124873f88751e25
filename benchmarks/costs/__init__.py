"""What a step of each method costs: on paper, and in the program that is compiled."""
