from benchmark_utils.data import real
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "a9a"
    parameters = {"penalty": ["graph"], "strength": [1e-5]}

    def get_data(self):
        return real("a9a", standardise=False, strength=self.strength, penalty=self.penalty)
