"""The best mixture under constraints, what each constraint costs, and how flat the optimum is."""
