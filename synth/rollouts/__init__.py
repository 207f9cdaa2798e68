"""How many rollouts a prompt gets, at which temperature, when to stop, and what they say of its difficulty."""
