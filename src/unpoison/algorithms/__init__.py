"""Ranking, clustering, cuts, votes and statistics: arrays in and out, as the papers write them."""
