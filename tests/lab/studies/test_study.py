"""Study files: errors, and the runs that they describe."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz import study_files
from tightrope import InfeasibleError, InvalidInputError, Study
from tightrope.lab import plan
from tightrope.lab.plan import planned
from tightrope.lab.runner import folder_name
from tightrope.lab.study import Named, Records, StudyFile, differences, to_toml, with_budgets, with_values
from tightrope.problems.files import write_example

SMALL = {"name": "random", "layer_sizes": [1, 2, 1], "n_actions": 2}


def read(tmp_path: Path, text: str) -> Study:
    path = tmp_path / "study.toml"
    path.write_text(text)
    return StudyFile(path).study


def test_the_example_of_the_documentation_is_one(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "studies.md"
    study = read(tmp_path, page.read_text("utf-8").partition("```toml\n")[2].partition("```")[0])
    runs = planned(study)
    # 2 problems × (drifting and switching, each with 2 periods) × 2 learners with 3 radii × 10 seeds
    assert len(runs) == 2 * 4 * 6 * 10
    assert len({run.digest for run in runs}) == len(runs)
    assert len({run.name for run in runs}) == len(runs)
    assert all(run.learner.options["level"] == 0.05 for run in runs if run.learner.name == "ucpd")
    assert {run.conditions.losses.options["period"] for run in runs if run.conditions.losses} == {100, 500}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("problems = ['random']\nlerners = ['ucpd']", "line 2: a study has no key 'lerners'; did you mean 'learners'"),
        ("problems = ['random']\n[records]\nspaceing = 'log'", r"line 3: \[records\] has no key 'spaceing'.*'spacing'"),
        ("problems = ['random']\n[grid]\nlearners.x = [1]", r"\[grid\] has no key 'learners'; did you mean 'learner'"),
        ("learners = ['ucpd']", "there is no 'problems'"),
        ("problems = []", "problems"),
        ("problems = ['random']\nseeds = 0", "line 2: .*seeds"),
        ("problems = ['random']\nepisodes = 'many'", "line 2: .*episodes"),
        ("problems = ['random']\nepisodes = 1.5", "line 2: .*episodes"),
        ("problems = ['random']\nepisodes = 1e99", "line 2: .*episodes"),
        ("problems = ['random']\nseeds = 1_000_001", "line 2: .*seeds"),
        ("problems = ['random']\n[records]\ncount = 10_000_001", "line 3: .*count"),
        ("problems = ['random']\n[records]\nspacing = 'even'", "spacing"),
        ("problems = [", "not valid TOML"),
    ],
)
def test_errors_in_a_study_file_name_the_line(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=words):
        read(tmp_path, text)


def test_keys_that_tightrope_writes_are_not_suggested(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no key 'content'") as refused:
        read(tmp_path, "problems = ['random']\ncontent = 3")
    assert "contents" not in str(refused.value)


@pytest.mark.parametrize(
    ("study", "words"),
    [
        (Study(problems=["randm"]), "no problem 'randm'; did you mean 'random'"),
        (Study(problems=[{"name": "random", "layers": 3}]), "no option 'layers'"),
        (Study(problems=[{"layers": 3}]), "has no name"),
        (Study(problems=[SMALL], learners=["ucdp"]), "no learner 'ucdp'; did you mean 'ucpd'"),
        (Study(problems=[SMALL], learners=[{"name": "ucpd", "radius": 1}]), "ucpd has no option 'radius'"),
        (Study(problems=[SMALL], learners=[{"name": "ucpd", "radius_scale": -1}]), "radius_scale is -1"),
        (Study(problems=[SMALL], losses=["wether"]), "there is no loss sequence 'wether'"),
        (
            Study(problems=[SMALL], losses=[{"name": "switching", "priod": 1}]),
            "no option .priod.; did you mean",
        ),
        (Study(problems=[SMALL], noises=["loud"]), "there is no noise 'loud'"),
        (Study(problems=[SMALL | {"losses": "fixed"}], losses=["iid"]), "losses of its own, and so has the study"),
    ],
)
def test_unknown_names_and_options_are_refused(study: Study, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        planned(study)


def test_values_on_the_command_line_are_those_of_toml_or_text() -> None:
    study = with_values(
        Study(problems=["random"]),
        ["learner.radius_scale=0.1, 3", "problem.layer_sizes=[1,2,1],[1,3,1]", "learner.confidence=kl,paper"],
    )
    assert study.grid.learner == {"radius_scale": [0.1, 3], "confidence": ["kl", "paper"]}
    assert study.grid.problem == {"layer_sizes": [[1, 2, 1], [1, 3, 1]]}


def test_an_option_set_twice_takes_both_values_and_replaces_the_file_s() -> None:
    file = with_values(Study(problems=["random"]), ["learner.radius_scale=3"])
    study = with_values(file, ["learner.radius_scale=0.1", "learner.radius_scale=0.3,1"])
    assert study.grid.learner == {"radius_scale": [0.1, 0.3, 1]}


def test_equal_values_are_one_run(tmp_path: Path) -> None:
    study = Study(problems=[SMALL], learners=["ucpd"])
    [run] = planned(with_values(study, ["learner.radius_scale=1,1.0,1e0", "problem.layer_sizes=[1,2,1],[1.0,2,1]"]))
    file = read(
        tmp_path,
        """problems = [{name = "random", layer_sizes = [1, 2.0, 1], n_actions = 2}]
        learners = [{name = "ucpd", radius_scale = 1.0}, {name = "ucpd", radius_scale = 1}]""",
    )
    [read_back] = planned(file)
    assert run.name == read_back.name
    two = planned(with_values(study, ["learner.radius_scale=1,1.5"]))
    assert [run.learner.options["radius_scale"] for run in two] == [1, 1.5]


def test_whole_numbers_may_be_written_as_on_the_command_line(tmp_path: Path) -> None:
    study = read(tmp_path, "problems = ['random']\nepisodes = [1e3, 2_000.0]\nseeds = 2e1\n[records]\ncount = 1e2")
    assert (study.horizons, len(study.all_seeds), study.records.count) == ([1000, 2000], 20, 100)


@pytest.mark.parametrize(
    ("assignment", "words"),
    [
        ("radius_scale=1", "sets nothing"),
        ("learner.radius_scale", "sets nothing"),
        ("learner.radius_scale=", "sets nothing"),
        ("lerner.radius_scale=1", "nothing has options by the name of 'lerner'; did you mean 'learner'"),
        ("learner.radus_scale=1", "no learner in the study has the option 'radus_scale'; did you mean 'radius_scale'"),
        ("losses.period=3", "no loss sequence in the study has the option 'period'"),
        ("noise.spread=much", "spread is 'much'"),
    ],
)
def test_an_option_that_nothing_in_the_study_has_is_refused(assignment: str, words: str) -> None:
    study = Study(problems=[SMALL | {"noise": "scaled"}], learners=["ucpd", "uniform"], losses=["fixed"])
    with pytest.raises(InvalidInputError, match=words):
        planned(with_values(study, [assignment]))


def test_learners_without_the_option_are_played_once() -> None:
    study = Study(problems=[SMALL], learners=["ucpd", "uniform"], grid=Study(problems=["x"]).grid)
    runs = planned(with_values(study, ["learner.radius_scale=0.1,0.3"]))
    assert [run.learner for run in runs] == [
        Named("ucpd", {"radius_scale": 0.1}),
        Named("ucpd", {"radius_scale": 0.3}),
        Named("uniform"),
    ]


def test_folders_have_readable_names() -> None:
    losses = {"name": "switching", "period": 10}
    study = Study(problems=[SMALL], losses=[losses], learners=[{"name": "ucpd", "radius_scale": 0.1}], episodes=9)
    [run] = planned(study)
    words = "random-layer_sizes=1,2,1-n_actions=2-switching-period=10-ucpd-radius_scale=0.1-T9-seed0"
    assert run.name == f"{words}-{run.digest}"
    nested = msgspec.structs.replace(run, learner=Named("a/b", {"x": [[1, -2], {"y": True}], "z": "hm? ?"}))
    assert "-b-x=1,-2,y=True-z=hm-T9-" in nested.name
    long = msgspec.structs.replace(run, learner=Named("ucpd", {"x": "-" * 300}))
    assert len(long.name) < 130 and "--" not in long.name[-12:]


def test_the_grid_applies_to_a_problem_s_own_losses() -> None:
    runs = planned(with_values(Study(problems=["edge-cloud"], learners=["uniform"]), ["losses.period=10,20"]))
    losses = [run.conditions.losses for run in runs]
    assert losses == [Named("switching", {"period": 10}), Named("switching", {"period": 20})]


def test_an_edited_folder_is_another_problem_and_a_moved_one_is_not(tmp_path: Path) -> None:
    write_example(tmp_path / "here" / "mine")
    [before] = planned(Study(problems=["mine"], learners=["uniform"]), tmp_path / "here")
    assert before.conditions.problem == Named("mine")
    (tmp_path / "here").rename(tmp_path / "there")
    [moved] = planned(Study(problems=["./mine"], learners=["uniform"]), tmp_path / "there")
    assert moved.digest == before.digest
    assert moved.conditions.make_problem().name == "mine"
    table = tmp_path / "there" / "mine" / "loss.csv"
    table.write_text(table.read_text().replace("-100", "-99", 1))
    [edited] = planned(Study(problems=["mine"], learners=["uniform"]), tmp_path / "there")
    assert edited.digest != before.digest
    with pytest.raises(InvalidInputError, match="was changed while it was played"):
        moved.conditions.make_problem()


plain = st.text(max_size=5) | st.integers(-(2**60), 2**60) | st.floats(-1e90, 1e90) | st.booleans()
values = st.recursive(plain, lambda inner: st.lists(inner, max_size=3), max_leaves=5)
choices = st.text(max_size=5) | st.dictionaries(st.text(max_size=4), values, max_size=3)


@given(st.lists(choices, min_size=1, max_size=3), st.dictionaries(st.text(max_size=4), st.lists(values, max_size=2)))
def test_a_written_study_reads_back(problems: list[object], options: dict[str, list[object]]) -> None:
    study = msgspec.convert({"problems": problems, "grid": {"learner": options}}, Study)
    assert msgspec.toml.decode(to_toml(study), type=Study) == study


def test_changes_between_studies_are_described() -> None:
    before = Study(problems=[SMALL], learners=["ucpd", "uniform"], seeds=5, contents={"mine": "a"})
    now = with_values(
        Study(problems=[SMALL], learners=["ucpd", {"name": "o-reps"}], seeds=[7], episodes=9, contents={"mine": "b"}),
        ["learner.radius_scale=0.1,0.3"],
    )
    assert differences(before, before) == []
    assert differences(before, now) == [
        "learners: without uniform, with o-reps",
        "episodes 20000, now 9",
        "seeds 0 to 4, now 7",
        "learner.radius_scale none, now 0.1, 0.3",
        "the files of mine were edited",
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("seeds = 9007199254740993", "line 2: seeds: expected a whole number <= 100000"),
        ("seeds = [9007199254740993]", "line 2: seeds: expected a whole number <= 9007199254740992"),
        ("seeds = 50000\nepisodes = [1, 2, 3]", "has 300000 runs or more; at most 100000 are allowed"),
        (
            "learners = ['ucpd']\n[grid]\n" + "".join(f"learner.{o} = {[0.1] * 55}\n" for o in ("V", "alpha", "level")),
            "has 166375 runs or more",
        ),
        ('losses = ["' + "x" * 300 + '"]', "there is no loss sequence"),
    ],
)
def test_a_study_of_too_many_runs_is_refused_before_they_are_listed(text: str, words: str, tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(f'problems = ["random"]\n{text}\n')
    with pytest.raises(InvalidInputError, match=words):
        planned(StudyFile(file).study)


def test_a_name_that_is_no_valid_path_is_not_a_folder() -> None:
    with pytest.raises(InvalidInputError, match="there is no folder and no problem 'xxx"):
        planned(Study(problems=["x" * 300]))


def test_learners_named_twice_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    monkeypatch.setattr(plan, "make_learner", lambda name, *told, **options: made.append(name))
    planned(Study(problems=["random"], learners=["ucpd", {"name": "ucpd"}, "ucpd", "uniform"]))
    assert made == ["ucpd", "uniform"]


@pytest.mark.parametrize("tens", range(5))
def test_a_damaged_study_file_is_planned_or_refused(tens: int, tmp_path: Path) -> None:
    for number in range(10 * tens, 10 * tens + 10):
        place = tmp_path / str(number)
        place.mkdir()
        assert study_files.attempt(1, number, place) in ("planned", "refused")


def test_the_files_are_fine_before_they_are_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study_files, "MUTATIONS", (lambda rng, files: None,))
    for number in range(6):
        place = tmp_path / str(number)
        place.mkdir()
        assert study_files.attempt(0, number, place) == "planned"


def test_runs_and_folders_have_the_names_that_version_0_2_gave_them() -> None:
    """Otherwise studies of 0.2 would not continue."""
    study = Study(problems=[SMALL], learners=["uniform"], losses=["switching"], noises=["scaled"], episodes=30,
                  seeds=[4], records=Records(count=5))  # fmt: skip
    study = with_values(study, ["losses.period=10,20"])
    assert [run.name for run in planned(study)] == [
        "random-layer_sizes=1,2,1-n_actions=2-switching-period=10-scaled-uniform-T30-seed4-12de569b",
        "random-layer_sizes=1,2,1-n_actions=2-switching-period=20-scaled-uniform-T30-seed4-97182b5e",
    ]
    assert folder_name(study) == "random-switching-scaled-uniform-T30-seed4-1871cf89"


def test_limits_of_budgets_are_a_part_of_the_grid(tmp_path: Path) -> None:
    study = read(tmp_path, "problems = ['media-streaming']\n[grid]\nbudget.\"fast steps\" = [4, 5.0, 5]")
    assert [run.conditions.limits for run in planned(study)][::2] == [{"fast steps": 4}, {"fast steps": 5}]
    again = read(tmp_path, to_toml(study))
    assert [run.name for run in planned(again)] == [run.name for run in planned(study)]
    assert "budget-fast-steps=4-T20000" in planned(study)[0].name
    with pytest.raises(InvalidInputError, match="no problem in the study has the budget 'slow steps'; did you mean"):
        planned(with_budgets(study, {"slow steps": [1]}))
    with pytest.raises(InfeasibleError, match="fast steps"):
        planned(with_budgets(study, {"fast steps": [-1]}))
    with pytest.raises(InvalidInputError, match="the limit of a budget must be a number"):
        with_values(study, ["budget.fast steps=few"])
