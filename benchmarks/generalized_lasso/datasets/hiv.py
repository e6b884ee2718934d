from benchmark_utils.data import real
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "hiv-path4932"
    parameters = {"penalty": ["graph"], "strength": [1e-4]}

    def get_data(self):
        return real("hiv-path4932", standardise=False, strength=self.strength, penalty=self.penalty)
