"""Tables whose pages the tests open."""

import numpy as np
import pandas as pd

from featgeo.explore import explore

N = 1500
LONG = "a_name_of_the_whole_question_17b"
PAYMENTS = ("cash on delivery, at the door", "credit card (any of the three usual ones)", "invoice")
HOSTILE = (
    "<script>window.hacked = 1</script>",
    '"><img src=x onerror="window.hacked=2">',
    "</script><script>window.hacked=3</script>",
    "' onmouseover='window.hacked=4",
    "{{constructor}} ${window.hacked=5} <!-- ]]>",
    "مرحبا \u202eabc\u202c",
    "👩‍👩‍👧‍👦 🏳️‍🌈",
    "long " + "x" * 10_000,
    "~tilde/slash#hash%20?&",
    "line\nbreak\ttab\u2028\x00",
)


def plain_table():
    """Numbers, labels, a date, holes, what Pearson misses, chance, two together, a copy, tiny ones, long names."""
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 100, N)
    city = rng.choice(["Aarhus", "Bergen", "Cork"], N, p=[0.5, 0.3, 0.2])
    size = rng.lognormal(3, 0.5, N)
    rating = np.cos(age / 16) + 0.4 * rng.standard_normal(N)
    rating[rng.random(N) < 0.1] = np.nan
    side, noise = rng.choice([-1, 1], N), rng.standard_normal(N)
    return pd.DataFrame(
        {
            "age": age,
            "rating": rating,
            "city": city,
            "size": size,
            "price": size
            * np.where(city == "Cork", 2.0, 1.0)
            * rng.lognormal(0, 0.2, N)
            * 1.3 ** (side * np.sign(noise)),
            "town": np.char.upper(city),
            "noise": noise,
            "coin": np.where(side > 0, "heads", "tails"),
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.sort(rng.integers(0, 900, N)), unit="D"),
            "key": [f"k{i}" for i in range(N)],
            "tiny": 3e-8 * np.sin(age / 16) + 1e-9 * rng.standard_normal(N),
            "payment": np.array(PAYMENTS)[np.digitize(age, (30, 60))],
            LONG: age > 40,
        }
    )


def plain_page():
    return explore(plain_table(), target="price", given=["city"], verbose=0)


def hostile_page():
    """Names of columns and their labels are what nobody should hand in."""
    rng = np.random.default_rng(1)
    n, x = 400, rng.standard_normal(400)
    columns = {}
    for i, name in enumerate(HOSTILE):
        shared = (x > 0) if i % 2 else rng.random(n) < 0.5
        columns[name] = np.where(shared, HOSTILE[(i + 1) % len(HOSTILE)], HOSTILE[(i + 2) % len(HOSTILE)])
    columns["x"] = x
    return explore(pd.DataFrame(columns), target="x", given=[HOSTILE[0]], verbose=0)
