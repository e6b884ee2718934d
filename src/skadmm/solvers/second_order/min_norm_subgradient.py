"""The smallest subgradient: multipliers for the rows of A that are zero.

Where y_e = (Ax)_e is not zero its multiplier is ±λ_e; where it is zero it may be anything in between, and

    minimise over β_e ∈ [−λ_e, λ_e], e tied      ½‖g + Aᵀβ‖²

gives the steepest descent direction −r, r = g + Aᵀβ. x is optimal exactly when r = 0. A tied row whose multiplier sits
on its bound and whose (Ar)_e is not zero wants to open; all others want to stay as they are. For the incidence matrix
of a graph this is a flow along its edges, hence the name. Solved by projected over-relaxed Gauss–Seidel sweeps, which
soon see only the few rows near features that still have something to send.
"""

import numpy as np

from skadmm.kernels.compile import kernel
from skadmm.kernels.rows import copy_into, span, unsigned

RELAXATION = 1.5


@kernel
def balance(indptr, indices, data, tied, strength, beta, r, sweeps, tolerance):
    """Improve β on the rows in `tied` and r = g + Aᵀβ with it; returns the sweeps made.

    A row sleeps until the r of one of its features changes.
    """
    awake, stirred = r != 0.0, np.zeros(r.size, np.bool_)
    live = np.empty(tied.size, np.int64)
    done = 0
    while done < sweeps:
        count = 0
        for e in tied:
            for p in span(indptr, e):
                if awake[unsigned(indices[p])]:
                    live[count] = e
                    count += 1
                    break
        if count == 0:
            return done
        stirred[:] = False
        largest = 0.0
        for turn in range(2 if done < 4 else 10):
            largest = 0.0
            for k in range(count):
                e = live[k] if turn % 2 == 0 else live[count - 1 - k]
                pull, square = 0.0, 0.0
                for p in span(indptr, e):
                    pull += data[p] * r[unsigned(indices[p])]
                    square += data[p] * data[p]
                if pull == 0.0:
                    continue
                single = indptr[e + 1] - indptr[e] == 1
                wanted = beta[e] - (1.0 if single else RELAXATION) * pull / square
                wanted = min(max(wanted, -strength[e]), strength[e])
                change = wanted - beta[e]
                if change == 0.0:
                    continue
                beta[e] = wanted
                for p in span(indptr, e):
                    r[unsigned(indices[p])] += data[p] * change
                    stirred[unsigned(indices[p])] = True
                if single and abs(wanted) < strength[e]:
                    r[indices[indptr[e]]] = 0.0  # exactly
                largest = max(largest, abs(change) / strength[e])
            done += 1
            if largest <= tolerance:
                return done
        copy_into(stirred, awake)
    return done
