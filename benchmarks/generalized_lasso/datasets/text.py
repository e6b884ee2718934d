from benchmark_utils.data import real
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "20ng-ltc"
    parameters = {"penalty": ["graph"], "strength": [1e-4]}

    def get_data(self):
        return real("20ng-ltc", standardise=False, strength=self.strength, penalty=self.penalty)
