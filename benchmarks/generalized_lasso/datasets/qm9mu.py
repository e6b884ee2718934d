from benchmark_utils.data import real
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "qm9mu"
    parameters = {"penalty": ["graph"], "strength": [1e-5]}

    def get_data(self):
        return real("qm9mu", standardise=True, strength=self.strength, penalty=self.penalty)
