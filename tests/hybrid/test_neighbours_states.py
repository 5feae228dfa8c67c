"""Any order of writes, builds and queries: scores are of the rows as they stand, no row that was written is missed."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from hybrid.neighbours import Neighbours

ROWS, WIDTH, METRICS = 300, 5, ["angular", "dot"]


class Table(RuleBasedStateMachine):
    """A table beside its plain rows.

    fresh  ids of rows that were written since the index in use was begun
    """

    @initialize(metric=st.sampled_from(METRICS), index=st.sampled_from(["annoy", "exact"]), seed=st.integers(0, 9))
    def begin(self, metric, index, seed):
        self.rng, self.metric, self.index = np.random.default_rng(seed), metric, index
        self.rows = self.rng.normal(size=(ROWS, WIDTH)).astype(np.float32)
        few = {"trees": 2, "search": 20} if index == "annoy" else {}  # an index that is not told of rows misses them
        self.table = Neighbours(self.rows, metric=metric, index=index, exact_below=0, **few)
        self.fresh, self.since, self.building = set(), set(), None

    @rule(count=st.integers(1, 20), every=st.booleans())
    def write(self, count, every):
        ids = np.arange(ROWS) if every else self.rng.choice(ROWS, count, replace=False)
        self.rows[ids] = self.rng.normal(size=(len(ids), WIDTH))
        self.table.changed() if every else self.table.changed(ids)
        self.fresh |= set(ids.tolist())
        self.since |= set(ids.tolist())

    @rule()
    def build(self):
        self.arrive()
        self.table.build()
        self.fresh, self.since = set(), set()

    @rule()
    def rebuild(self):
        self.arrive()
        self.building, self.since = self.table.rebuild(), set()

    @rule()
    def arrive(self):
        if self.building:
            self.building.result()
            self.building, self.fresh = None, self.since
            self.since = set(self.fresh)

    @rule(k=st.integers(1, 12), left_out=st.integers(0, 30))
    def query(self, k, left_out):
        from scipy.sparse import csr_array

        hidden = self.rng.normal(size=(4, WIDTH)).astype(np.float32)
        without = np.zeros((4, ROWS), bool)
        without[:, self.rng.choice(ROWS, left_out, replace=False)] = True
        ids, scores = self.table.query(hidden, k, csr_array(without) if left_out else None)
        for row, found, told, out in zip(self._scores(hidden), ids, scores, without, strict=True):
            there = found >= 0
            assert len(set(found[there].tolist())) == there.sum() and not out[found[there]].any()
            np.testing.assert_allclose(told[there], row[found[there]], rtol=1e-4, atol=1e-5)
            assert (np.diff(told[there]) <= 0).all() and there.all()
            row[out] = -np.inf
            least = np.sort(row)[-k] + 1e-5
            expected = set(np.flatnonzero(row > least).tolist())
            fresh = self.since if self.building else self.fresh  # the new index may be in use already
            certain = expected if self.index == "exact" else expected & fresh
            assert certain <= set(found.tolist()), certain - set(found.tolist())

    def _scores(self, hidden):
        rows, hidden = self.rows.astype(float), hidden.astype(float)
        if self.metric == "angular":
            rows, hidden = (one / np.linalg.norm(one, axis=1, keepdims=True) for one in (rows, hidden))
        return hidden @ rows.T


TestTable = Table.TestCase
TestTable.settings = settings(max_examples=max(1, settings.default.max_examples // 5), stateful_step_count=15)
