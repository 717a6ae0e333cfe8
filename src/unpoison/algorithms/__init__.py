"""Ranking, clustering, cuts, votes, statistics: arrays in and out, as the papers write them."""
