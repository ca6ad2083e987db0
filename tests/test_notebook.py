"""What a notebook shows: of every result HTML or a picture, never a bare text. One kernel runs all cells."""

from __future__ import annotations

import nbformat
from nbclient import NotebookClient

BEGIN = """
import numpy as np, pandas as pd, featgeo as fg
rng = np.random.default_rng(0)
table = pd.DataFrame({"size": rng.normal(size=200), "colour": rng.choice(["red", "blue"], 200)})
price = table["size"] + (table["colour"] == "red") + 0.5 * rng.normal(size=200)
dear = np.where(price > 0.5, "dear", "cheap")
linear = dict(x_space="linear", random_state=0)
model = fg.FeatureRegressor(1, y_space="linear", **linear).fit(table, price)
labels = fg.FeatureClassifier(**linear).fit(table, dear)
beside = fg.ConditionalDecomposition(random_state=0).fit(table["colour"], dear, table["size"] > 0)
parts = fg.MultimodalDecomposition(
    max_order=1, spaces="linear", sources={"a": "size", "b": "colour"}, random_state=0
).fit(table, price)
chain = fg.SequentialDecomposition(1, random_state=0).fit("abacabadabacabaabacabad" * 4)
joint = fg.FiniteJoint([[2, 1, 0], [1, 3, 2]])
"""
SHOWN = [
    "fg.FeatureRegressor()",
    *("model", "labels", "beside", "parts", "chain"),
    *("model.report()", "beside.report()", "chain.components_[1]"),
    *("model.given(table)", "labels.given(table)", "labels.head('log')"),
    *("model.importance()", "model.importance().to_frame()", "model.mutual_information_"),
    *("parts.energies()", "parts.energies()['a alone']", "parts.identified_['a']", "beside.posterior_"),
    "parts.optimal_transformations(table)",
    *("fg.independence_test(table['size'], price)", "fg.leakage(table[['size']], price)"),
    *(
        "joint",
        "joint.modes()",
        "fg.decompose(fg.Moments.from_features({'x': table[['size']], 'y': price}), [('x', 'y')])[0]",
    ),
]
DRAWN = [
    *("model.plot()", "model.plot('spectrum')", "model.plot('columns')", "model.plot('effects')", "parts.plot()"),
    *("beside.plot()", "chain.plot()", "model.given(table).plot(along=table['size'], y=price)"),
]


def test_every_display_is_a_page_or_a_picture():
    cells = [nbformat.v4.new_code_cell(source) for source in (BEGIN, *SHOWN, *DRAWN)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    outputs = {cell.source: cell.outputs for cell in notebook.cells}
    for kind, sources in (("text/html", SHOWN), ("image/png", DRAWN)):
        for source in sources:
            (output,) = outputs[source]
            assert kind in output.data, (source, output.data)
