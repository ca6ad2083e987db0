# Two commands: `make demo` and `make test`. Each sets up .venv by itself; the first run downloads the dependencies.
PYTHON ?= python3
BIN := .venv/bin
PAGE := src/featgeo/report/explore

# Whoever is done first takes tests of the other (worksteal): files are long and short.
# One thread: the matrices of the tests are small, and default threading is far slower on a busy machine.
export OMP_NUM_THREADS := 1

.PHONY: demo test lint tests page
demo: .venv/ready
	$(BIN)/featgeo demo --output build/demo
	$(BIN)/featgeo reproduce --fresh --output build/demo/paper

# What is read (one thread) beside what is run, which waits for processes of its own now and then.
test: .venv/ready $(PAGE)/node_modules
	$(MAKE) --no-print-directory --jobs 2 lint tests

lint: .venv/ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

tests: .venv/ready $(PAGE)/node_modules
	$(BIN)/pytest --numprocesses 2 --dist worksteal

# The page of `featgeo explore`, from its sources; needs Node. What it writes is committed: users need none.
page: $(PAGE)/node_modules
	cd $(PAGE) && npm run --silent check && npm run --silent build

# Tests of the page's sources and of its accessibility need it, and are skipped where there is no Node.
$(PAGE)/node_modules: $(PAGE)/package-lock.json
	cd $(PAGE) && npm ci --silent --no-audit --no-fund && touch node_modules || echo "NO NODE: sources of the page go untested." >&2

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[test]'
	touch $@
