"""A few ratings, and how to compare what was read with them."""

from hybrid.feeds.ratings import Ratings

ROWS = [("7", "x", 5, 30), ("3", "y", 1, 20), ("7", "y", 2, 10), ("3", "z", 4, 20), ("9", "y", 3, 1)]


USERS, ITEMS = ["7", "3", "9"], ["y", "x", "z"]  # by first appearance; most rated first, then by name


def written(tmp_path, content, name="ratings"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def by_name(data: Ratings):
    named = zip(data.user, data.item, data.time, strict=True)
    return [(data.users[user], data.items[item], time) for user, item, time in named]


TIMED = [(user, item, time) for user, item, _, time in ROWS]


BY_ROW = [(user, item, row) for row, (user, item, _, _) in enumerate(ROWS)]
