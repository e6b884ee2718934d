from benchmark_utils.data import real
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "covtype"
    parameters = {"penalty": ["graph"], "strength": [1e-5]}

    def get_data(self):
        return real("covtype", standardise=True, strength=self.strength, penalty=self.penalty)
