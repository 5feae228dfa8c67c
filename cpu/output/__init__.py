"""Common parts of output layers: update rules, negatives, scores, the parts of a head."""
