"""The whole way as one resumable job: propose, train proxies, fit, optimise, write the mixture."""
