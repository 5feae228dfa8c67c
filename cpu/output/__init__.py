"""What output layers share: rules, negatives, scores, the parts of a head."""
