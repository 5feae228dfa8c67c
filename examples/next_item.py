"""Learn from who took what which item comes next, and recommend to somebody by what he had.

Ratings are a file (MovieLens u.data, a table with a header, Parquet) or, by default, made: every user has a taste for two
of eight genres, and walks through them. You see how often the held-out last item of a user is among ten recommended, beside
the ten items that are taken most; then what is recommended after one history, without the items that are in it.

    python examples/next_item.py --ratings u.data --history "50,181,174"
"""

import argparse

import numpy as np

from hybrid import MLP, SGD, Embedding, Engine, FullReadout, HistoryFeed, Recommender, ratings

LENGTH = 5  # items of a history that the model sees
GENRES = ["comedy", "crime", "drama", "horror", "music", "romance", "war", "western"]


def made(users=600, each=20, seed=0) -> ratings.Ratings:
    """Ratings of users who like two genres each and seldom take anything else."""
    rng = np.random.default_rng(seed)
    item = []
    for _ in range(users):
        liked = rng.choice(GENRES, 2, replace=False)
        genres = (rng.choice(liked if rng.random() < 0.9 else GENRES) for _ in range(each))
        item += [f"{genre} {int(30 * rng.random() ** 2)}" for genre in genres]  # low numbers are popular
    return ratings.from_columns(np.repeat(np.arange(users), each), item)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", help="a file of ratings (default: made)")
    parser.add_argument("--history", help="items, separated by commas (default: two comedies and a western)")
    arguments = parser.parse_args()

    table = ratings.load(arguments.ratings) if arguments.ratings else made()
    parts = ratings.split(ratings.histories(table))  # the last two items of each user are held out
    feed = HistoryFeed(parts.train, length=LENGTH, batch=256, epochs=5)
    rows = Embedding(feed.rows, 64, spread=0.1, optimiser=SGD(0.18), bags="mean")
    engine = Engine(
        rows, MLP([64, 128, 32], optimiser=SGD(0.16, momentum=0.9)), FullReadout(feed.counts, 32, optimiser=SGD(0.09))
    )
    for _ in engine.run(feed):
        pass

    model = Recommender(engine, parts.seen, length=LENGTH)
    seen, last = parts.seen, parts.test
    histories = [seen.item[seen.at[user] : seen.at[user + 1]] for user in last.user]
    new = np.array([item not in history for item, history in zip(last.item, histories, strict=True)])
    found = model.recommend([table.users[user] for user in last.user], k=10).ids  # without what they had
    found = (found == last.item[:, None]).any(axis=1)
    # Items are numbered by how often they are taken, so this is the place of each among those new to the user.
    places = [item - len(set(had[had < item])) for item, had in zip(last.item, histories, strict=True)]
    popular = np.array(places) < 10
    print(f"{len(table.users):,} users, {len(table.items):,} items; the last item of {new.sum()} users:\n")
    print(f"among ten recommended     {found[new].mean():.1%}\namong the ten most taken  {popular[new].mean():.1%}")

    names = arguments.history.split(",") if arguments.history else ["comedy 3", "western 1", "comedy 0"]
    best = model.recommend_to([[name.strip() for name in names]], k=8).names[0]
    print(f"\nafter {', '.join(names)}:\n  " + "\n  ".join(best))


if __name__ == "__main__":
    main()
