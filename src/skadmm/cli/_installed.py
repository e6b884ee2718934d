"""What is installed: the only output of the command line that does not need typer."""


def installed() -> None:
    """Print versions, the methods and the data folders."""
    from skadmm.datasets import CATALOGUE, data_folders, find_file
    from skadmm.kernels import shipped
    from skadmm.paper.versions import versions
    from skadmm.solvers import ALGORITHMS, SOLVERS

    for name, version in versions().items():
        print(f"{name:<14}{version}")
    print(f"{'kernels':<14}{shipped.summary()}")
    width = max(map(len, [*ALGORITHMS, *SOLVERS])) + 2
    print("\nmethods")
    for name, algorithm in ALGORITHMS.items():
        print(f"  {name:<{width}}{algorithm.summary}")
    print("\nsecond-order solvers behind san-admm")
    for name, solver in SOLVERS.items():
        print(f"  {name:<{width}}{solver.summary}")
    folders = data_folders()
    present = [name for name, entry in CATALOGUE.items() if find_file(entry.stems, folders)]
    print(f"\ndata files are searched for in {', '.join(map(str, folders))}")
    print(f"present: {', '.join(present) or 'none'}")
