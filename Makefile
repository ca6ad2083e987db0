# Two commands: `make demo` and `make test`. Each sets up .venv by itself; the first run downloads the dependencies.
PYTHON ?= python3
BIN := .venv/bin

# Whoever is done first takes tests of the other (worksteal): files are long and short.
# One thread: the matrices of the tests are small, and default threading is far slower on a busy machine.
export OMP_NUM_THREADS := 1

.PHONY: demo test page
demo: .venv/ready
	$(BIN)/featgeo demo --output build/demo
	$(BIN)/featgeo reproduce --fresh --output build/demo/paper

test: .venv/ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest --numprocesses 2 --dist worksteal

# The page of `featgeo explore`, from its sources; needs Node. What it writes is committed: users need none.
page:
	cd src/featgeo/report/explore && npm ci --silent && npm run --silent check && npm run --silent build

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[test]'
	touch $@
