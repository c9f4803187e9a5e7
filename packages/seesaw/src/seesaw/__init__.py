"""Seesaw: decay the learning rate half as much in log-scale, grow the batch instead."""
