"""Samples as what SFT, preference training, RLVR and pretraining read, proved row by row before it is written."""
