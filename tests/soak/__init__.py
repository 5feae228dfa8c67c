"""Random engines, left, saved, resumed, interrupted and broken in many orders, end as the serial run."""
