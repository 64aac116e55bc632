"""Changes of formulas: which lines are changed and how, which are left alone, and which tests are asked first."""

from pathlib import Path

from fuzz.changes import changes_of
from fuzz.mutations import ROOT, calls_for, importers, sample

FORMULAS = '''"""1 + 1 in words."""
from x import numbers, parameter

class Learner:
    level: Annotated[float, 3] = parameter(default=0.01)
    values: FloatArray = numbers(least=-1e-3, since=4)

    def summary(self):
        return 0, 1 + 1

    def step(self, g, w):
        if not w < len(g):
            raise ValueError(f"{w} is not below {len(g) + 1}")
        for value in -g.sum(axis=1):
            w += np.sqrt(value)
        return np.clip(w / max(w, 0), 0, self.most)
'''


def test_every_formula_is_changed_and_nothing_else() -> None:
    assert [(change.line, change.after.strip()) for change in changes_of("learner.py", FORMULAS)] == [
        (5, "level: Annotated[float, 3] = parameter(default=0.02)"),
        (12, "if not w <= len(g):"),
        (14, "for value in g.sum(axis=1):"),
        (14, "for value in -g.sum(axis=0):"),
        (15, "w -= np.sqrt(value)"),
        (15, "w += (value)"),
        (16, "return np.clip(w * max(w, 0), 0, self.most)"),
        (16, "return np.clip(w / min(w, 0), 0, self.most)"),
        (16, "return np.clip(w / max(w, 1), 0, self.most)"),
        (16, "return np.clip(w / max(w, 0), -np.inf, self.most)"),
        (16, "return np.clip(w / max(w, 0), 1, self.most)"),
        (16, "return np.clip(w / max(w, 0), 0, np.inf)"),
    ]


def test_a_change_is_applied_to_its_line_alone() -> None:
    change = changes_of("learner.py", "x = 1\ny = 2\nz = 1 - y\n")[1]
    assert change.applied_to("x = 1\ny = 2\nz = 1 - y\n") == "x = 1\ny = 1\nz = 1 - y\n"


def test_a_sample_is_drawn_by_its_seed_and_hardly_changes_when_learners_are_added(tmp_path: Path) -> None:
    learners = tmp_path / "src/tightrope/learners"
    learners.mkdir(parents=True)
    for name in ("one", "other"):
        (learners / f"{name}.py").write_text(FORMULAS)
    before = sample(tmp_path, 10, seed=0)
    assert before == sample(tmp_path, 10, seed=0) != sample(tmp_path, 10, seed=1)
    assert before[:5] == sample(tmp_path, 5, seed=0)
    (learners / "new.py").write_text("\n\nx = 1 + 2\n")
    assert len({*before} & {*sample(tmp_path, 10, seed=0)}) >= 7


def test_tests_that_mention_a_module_run_first() -> None:
    shared = "src/tightrope/learners/shared/pricing.py"
    learners = [f"src/tightrope/learners/{name}.py" for name in ("ucpd_bandit_0_2", "ucpd_practical_0_2")]
    assert importers(ROOT, shared)[:3] == [shared, *learners]
    mention, of_all = calls_for(ROOT, shared)
    assert "tests/learners/test_pricing.py" in mention[:3]
    assert "tests/learners/test_ucpd_bandit_0_2.py" in mention
    assert "tests/learners/test_contract.py" in of_all
    assert of_all[-2] == "-k" and "ucpd-bandit-0.2" in of_all[-1]
