"""Teachers, prompts, rollouts, verifiers, selection and exports: data that models make, verified, with no row lost."""
