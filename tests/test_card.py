"""Results show themselves: as text in a terminal, as HTML in a notebook."""

from html.parser import HTMLParser

import numpy as np
import pytest

import featgeo as fg
from featgeo.card import Card


class Reader(HTMLParser):
    """What a browser would show: the words, the tags, and whether all of them are closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words, self.tags, self.open = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def test_a_card_as_text_is_aligned_and_ends_with_doubts():
    card = Card(["title", "a sentence"], ("mode", "sigma"), [("1", "0.5"), ("10", "0.25")], ["hardly any rows"])
    assert card.text() == "title\na sentence\nmode  sigma\n   1    0.5\n  10   0.25\n! hardly any rows"
    words = Card((), ("", "energy"), [("a", "0.5"), ("a x b", "0.25")])
    assert words.text() == "       energy\na         0.5\na x b    0.25"
    assert Card(["one line"]).text() == "one line"


def test_a_card_as_html_holds_the_same_and_nothing_of_it_is_code():
    card = Card(["<script>x</script>"], ("a & b",), [("<i>",)], ["1 < 2"])
    read = Reader(card.html())
    assert read.words == ["<script>x</script>", "a & b", "<i>", "1 < 2"]
    assert not read.open
    assert "script" not in read.tags


def test_strengths_are_drawn_as_bars_and_held_out_ones_as_dots_where_there_are_any():
    tags = Reader(Card(["t"], bars=[0.9, 0.5, 0.0], dots=[0.8, np.nan, -0.2]).html()).tags
    assert (tags.count("rect"), tags.count("circle"), tags.count("line")) == (3, 2, 1)
    assert 'y="6.0" width="22" height="54.0"' in Card(["t"], bars=[0.9], dots=[np.nan]).html()
    assert "svg" not in Card(["t"]).html()
    two = Card(["t"], bars=[0.5, 2.0], dots=[0.25, -1.0]).html()
    assert [part.split('"')[1] for part in two.split("<rect ")[1:]] == ["0", "28"]
    assert [tuple(part.split('"')[1:4:2]) for part in two.split("<circle ")[1:]] == [("11.0", "45.0"), ("39.0", "60.0")]
    assert 'x="28" y="0.0" width="22" height="60.0"' in two  # no strength leaves the picture
    assert 'width="56" height="68" viewBox="0 -4 56 68"' in two


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((300, 2))
    return x, x[:, 0] + 0.5 * rng.standard_normal(300), np.where(x[:, 1] + 0.5 * rng.standard_normal(300) > 0, "a", "b")


@pytest.fixture(scope="module")
def fitted(rows):
    x, y, s = rows
    options = {"random_state": 0, "verbose": 0}
    text = "".join(np.random.default_rng(0).choice(list("aab"), 400))
    return {
        "modal": fg.ModalDecomposition(2, x_space="spline", **options).fit(x, y),
        "classifier": fg.FeatureClassifier(x_space="linear", **options).fit(x, s),
        "side": fg.ConditionalDecomposition(1, 1, x_space="linear", **options).fit(x[:, 1], y, s),
        "sequence": fg.SequentialDecomposition(1, **options).fit(text),
        "sources": fg.MultimodalDecomposition(max_order=1, **options).fit({"a": x[:, 0], "b": s}, y),
    }


@pytest.mark.parametrize("name", ["modal", "classifier", "side", "sequence", "sources"])
@pytest.mark.filterwarnings("ignore::featgeo.FitWarning")
def test_a_fitted_estimator_shows_its_report_in_a_notebook(fitted, name):
    model = fitted[name]
    read = Reader(model._repr_html_())
    assert not read.open
    assert model._repr_mimebundle_() == {"text/plain": repr(model), "text/html": model._repr_html_()}
    assert model._repr_html_() == model.report()._repr_html_()
    assert repr(model.report()) == str(model.report()) == model.report().card().text()
    assert read.words[0] == str(model.report()).splitlines()[0]


def test_one_that_is_not_fitted_shows_its_parameters():
    assert "n_modes" in fg.ModalDecomposition(n_modes=7)._repr_html_()


def test_the_report_draws_each_mode(fitted):
    tags = Reader(fitted["modal"]._repr_html_()).tags
    assert (tags.count("rect"), tags.count("circle")) == (2, 2)
    assert tags.count("tr") == 3


def test_what_an_order_adds_is_reported(fitted):
    model = fitted["sequence"]
    assert str(model.report()).splitlines()[2].split()[:4] == ["order", "1", "1", f"{model.energies_[0]:.4f}"]


def test_distributions_show_their_first_rows(fitted, rows):
    x = rows[0]
    numbers, labels = fitted["modal"].given(x), fitted["classifier"].given(x)
    shown = str(numbers).splitlines()
    assert (
        shown[0]
        == repr(numbers).splitlines()[0]
        == f"Conditional(300 distributions over {len(numbers.classes)} numbers)"
    )
    assert shown[1].split() == ["row", "mean", "median", "5", "%", "95", "%"]
    low, high = numbers.interval(0.9)[2]
    cells = [2, numbers.mean()[2], numbers.quantile(0.5)[2], low, high]
    np.testing.assert_allclose([float(cell) for cell in shown[4].split()], cells, rtol=1e-3)
    assert len(shown) == 7
    assert str(labels).splitlines()[2].split() == ["0", labels.map()[0], f"{labels.proba()[0].max():.3f}"]
    assert not Reader(labels._repr_html_()).open


def test_tests_and_spectra_show_themselves(rows):
    x, y, _ = rows
    evidence = fg.independence_test(x[:, 0], y)
    assert repr(evidence) == str(evidence)
    assert Reader(evidence._repr_html_()).words == [str(evidence)]
    spectrum = fg.held_out_spectrum(x, y, fg.ModalDecomposition(1, x_space="linear", y_space="linear", verbose=0))
    assert Reader(spectrum._repr_html_()).tags.count("tr") == 2
