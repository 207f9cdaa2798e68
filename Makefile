# Each target sets up what it needs (.ci/set-up.sh: seconds where nothing changed, minutes on a fresh machine).
BIN := .venv/bin
WORKERS ?= 2
# Several processes beside each other, each with several threads of linear algebra, wait for each other.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: help demo teacher test test-heavy check format bench pins set-up clean

help:
	@echo "make demo        crawl this Python's own documentation and run recipes/quickstart.yaml on it"
	@echo "make teacher     vLLM in .venv-teacher, for a real teacher on a CPU (make test-heavy calls it)"
	@echo "make test        the tests; under 15 minutes on 2 cores"
	@echo "make test-heavy  the long tests; under 45 minutes on 2 cores"
	@echo "make check       ruff, mypy, import-linter"
	@echo "make format      rewrite the code as ruff wants it"
	@echo "make bench       side by side with peers: prints ratios"
	@echo "make pins        write constraints.txt anew, with the newest versions allowed"
	@echo "make clean       remove out/ and the caches, keep .venv and .venv-teacher"

set-up:
	@bash .ci/set-up.sh

demo: set-up
	@$(BIN)/python -m demo --workers $(WORKERS)

teacher:
	@bash .ci/set-up.sh teacher

# Verbosity -v cancels the -q of pyproject.toml: a log wants one line a file and the closing line in full.
test: set-up
	$(BIN)/python -m pytest -v -m "not heavy" -n $(WORKERS) --dist loadfile -p no:cacheprovider $(ARGS)

test-heavy: set-up teacher
	$(BIN)/python -m pytest -v -m heavy -p no:cacheprovider --timeout 1500 $(ARGS)

check: set-up
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: set-up
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# One topic a module; what has no main is shared by the others.
bench: set-up
	@for topic in $$(grep -l '^if __name__ == "__main__"' bench/*.py | sort); do \
		$(BIN)/python -m bench.$$(basename $$topic .py) || exit 1; \
	done

# The newest versions that pyproject.toml allows, resolved in an environment of their own. Test before you commit it.
pins: set-up
	$(BIN)/python -m venv --clear build/pins
	build/pins/bin/python -m pip install --quiet --editable ".[spark,train,mix,synth,bench,dev]"
	{ head -n 1 constraints.txt; build/pins/bin/python -m pip freeze --exclude-editable; } > build/constraints.txt
	mv build/constraints.txt constraints.txt
	$(BIN)/python -m venv --clear build/pins-teacher
	build/pins-teacher/bin/python -m pip install --quiet torch==2.13.0
	build/pins-teacher/bin/python -m pip install --quiet --editable ".[synth,teacher-cpu]"
	{ head -n 1 constraints-teacher.txt; build/pins-teacher/bin/python -m pip freeze --exclude-editable; } > build/constraints.txt
	mv build/constraints.txt constraints-teacher.txt

clean:
	rm -rf out build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
