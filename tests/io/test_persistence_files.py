"""Files of models that are damaged, forged, or from elsewhere: an error, never a crash, and nothing runs."""

import hashlib
import io
import json
import os
import sys
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier

from draws import examples
from tuplet.core.exceptions import MissingDependencyError, ModelFileError, TupletWarning
from tuplet.io.saved_models import load_model, read_header, save_model
from tuplet.io.saved_models.files import FORMAT
from tuplet.losses import Hamming
from tuplet.models import IndependentClassifier, PriorClassifier

pytest.importorskip("skops")

# -- damaged files -----------------------------------------------------------------------------------------

X4 = np.arange(4.0)[:, None]
Y4 = [["a", 1], ["b", 2], ["b", 1], ["a", 2]]


def saved(tmp_path, model=None):
    path = tmp_path / "model.tuplet"
    save_model(model or IndependentClassifier(DecisionTreeClassifier(max_depth=1)).fit(X4, Y4), path)
    return path


@pytest.fixture(scope="module")
def intact(tmp_path_factory):
    path = saved(tmp_path_factory.mktemp("intact"))
    return path.read_bytes(), load_model(path).predict_joint(X4).distribution.marginals()


@given(st.data())
@examples(30)
def test_a_damaged_file_is_an_error_or_the_same_model(intact, tmp_path_factory, data):
    content, expected = intact
    damage = bytearray(content)
    places = data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4))
    for place in places:
        damage[place] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.mktemp("damaged") / "model.tuplet"
    path.write_bytes(damage)
    try:
        answer = load_model(path).predict_joint(X4).distribution.marginals()
    except ModelFileError:
        return
    for a, b in zip(answer, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@given(st.data())
@examples(25)
def test_a_truncated_file_is_an_error(intact, tmp_path_factory, data):
    content, _ = intact
    path = tmp_path_factory.mktemp("short") / "model.tuplet"
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    for read in (load_model, read_header):
        with pytest.raises(ModelFileError, match="not a model of tuplet"):
            read(path)


def test_what_is_no_model_at_all_is_an_error(tmp_path):
    path = tmp_path / "model.tuplet"
    with pytest.raises(ModelFileError, match="There is no file"):
        load_model(path)
    for content in (b"", b"hello", b"PK\x03\x04" + bytes(100)):
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match="not a model of tuplet"):
            load_model(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("letter.txt", "hello")
    with pytest.raises(ModelFileError, match=r"no part 'header\.json'"):
        load_model(path)


@pytest.mark.parametrize("depth", [10**3, 10**5])
def test_deeply_nested_headers_are_errors(tmp_path, depth):
    path = tmp_path / "model.tuplet"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", "[" * depth + "]" * depth)
    with pytest.raises(ModelFileError):
        read_header(path)


def test_bombs_are_not_unpacked(tmp_path):
    path = saved(tmp_path)
    header = json.loads(zipfile.ZipFile(path).read("header.json"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header))
        archive.writestr("model.skops", bytes(10**7))
    with pytest.raises(ModelFileError, match="would unpack to 10,000,000 bytes"):
        load_model(path)


def test_other_formats_say_why_they_cannot_be_read(tmp_path):
    path = saved(tmp_path)
    forge(path, header=lambda h: h.update(format=FORMAT + 1) or h["versions"].update(tuplet="9.9"))
    for read in (load_model, read_header):
        with pytest.raises(ModelFileError, match=rf"format {FORMAT + 1}, .* tuplet 9\.9; .* newer version"):
            read(path)


def test_files_of_older_formats_are_refused(tmp_path):
    path = saved(tmp_path)
    forge(path, header=lambda h: h.update(format=FORMAT - 1))
    with pytest.raises(ModelFileError, match=rf"format {FORMAT - 1}, .* fit and save the model again\.$"):
        load_model(path)


@pytest.mark.parametrize(
    "edit",
    [
        lambda h: h.pop("format"),
        lambda h: h.update(format="1"),
        lambda h: h.pop("variables"),
        lambda h: h.update(variables=[1]),
        lambda h: h.update(versions=None),
        lambda h: h.update(model="ChainClassifier"),
        lambda h: h["variables"][0].update(name="other"),
        lambda h: h["variables"][0]["labels"].reverse(),
        lambda h: h.update(sha256="0" * 64),
        lambda h: h.pop("sha256"),
    ],
)
def test_an_edited_header_is_an_error(edit, tmp_path):
    path = saved(tmp_path)
    forge(path, header=edit, sign=False)
    with pytest.raises(ModelFileError):
        load_model(path)


def test_another_version_of_scikit_learn_is_told(tmp_path):
    path = saved(tmp_path)
    forge(path, header=lambda h: h["versions"].update({"scikit-learn": "0.1.2"}))
    with pytest.warns(TupletWarning, match=r"scikit-learn 0\.1\.2") as caught:
        load_model(path)
    assert caught[0].filename == __file__


def test_an_interrupted_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = saved(tmp_path)
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelFileError, match="No space left"):
        saved(tmp_path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(ModelFileError, match="No such file"):
        save_model(load_model(path), tmp_path / "nowhere" / "model.tuplet")


def test_without_skops_it_is_said_what_to_install(tmp_path, monkeypatch):
    path = saved(tmp_path)
    model = load_model(path)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(MissingDependencyError, match=r"pip install tuplet\[save\]"):
        save_model(model, path)
    with pytest.raises(MissingDependencyError, match=r"pip install tuplet\[save\]"):
        load_model(path)
    assert read_header(path).model == "IndependentClassifier"


# -- forged files ------------------------------------------------------------------------------------------


def forge(path, header=None, schema=None, members=None, sign=True):
    """Rewrite a file, with checksums that fit, as somebody with bad intentions would."""
    with zipfile.ZipFile(path) as archive:
        head, model = json.loads(archive.read("header.json")), archive.read("model.skops")
    if schema or members:
        with zipfile.ZipFile(io.BytesIO(model)) as inner:
            parts = {name: inner.read(name) for name in inner.namelist()}
        tree = json.loads(parts["schema.json"])
        parts.update(members or {})
        tree = (schema(tree) if schema else None) or tree
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as inner:
            for name, content in (parts | {"schema.json": json.dumps(tree)}).items():
                inner.writestr(name, content)
        model = buffer.getvalue()
    if sign:
        head["sha256"] = hashlib.sha256(model).hexdigest()
    if header:
        header(head)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps(head))
        archive.writestr("model.skops", model)


def attributes(tree):
    return tree["content"]["content"]


def node(loader, name, **content):
    module, _, cls = name.rpartition(".")
    return {"__class__": cls, "__module__": module, "__loader__": loader, "__id__": 1, **content}


def words(*texts):
    parts = [
        node("JsonNode", "builtins.str", content=json.dumps(t)) | {"__id__": 10 + i}
        for i, t in enumerate(texts)
    ]
    return node("TupleNode", "builtins.tuple", content=parts) | {"__id__": 2}


def keyed(maker, key):
    """Return a dict whose only key is made by calling something."""
    return node(
        "DictNode",
        "builtins.dict",
        content={key: node("JsonNode", "builtins.str", content="1") | {"__id__": 5}},
        key_types=node("ListNode", "builtins.list", content=[maker | {"__id__": 3}]) | {"__id__": 4},
    )


COMMAND = "touch executed"
FORGERIES = {
    "function": node("FunctionNode", "os.system"),
    "posix": node("FunctionNode", "posix.system"),
    "type": node("TypeNode", "subprocess.Popen"),
    "builtin": node("TypeNode", "builtins.eval"),
    "constructor": node("ConstructorFromReduceNode", "subprocess.Popen", content=words(COMMAND)),
    "command as key": keyed(node("FunctionNode", "os.system"), COMMAND),
    "eval as key": keyed(node("TypeNode", "builtins.eval"), "open('executed', 'w')"),
    "map as key": keyed(node("TypeNode", "builtins.map"), "a"),
    "object as key": keyed(node("ObjectNode", "sklearn.naive_bayes.GaussianNB"), "a"),
    "list of commands": node("ListNode", "os.system", content=[]),
    "made by tuplet": node("ConstructorFromReduceNode", "tuplet.ChainClassifier", content=words("a")),
    "list by tuplet": node("ListNode", "tuplet.ChainClassifier", content=[]),
    "tuple by tuplet": node("TupleNode", "tuplet.ChainClassifier", content=[]),
    "class of tuplet": node("TypeNode", "tuplet.ChainClassifier"),
    "key by tuplet": keyed(node("ObjectNode", "tuplet.ChainClassifier"), "a"),
    "tuple as object": node("ObjectNode", "tuplet.LabelForm"),
    "module path": node("ObjectNode", "tuplet.models.chain.ChainClassifier"),
    "module path as name": node("ObjectNode", "tuplet.models.chain:ChainClassifier"),
    "what tuplet imports": node("ObjectNode", "tuplet.core.processes.Process"),
    "function of tuplet": node("FunctionNode", "tuplet.load_model"),
    "module of tuplet": node("ObjectNode", "tuplet.models.nowhere.Thing"),
    "unregistered name": node("ObjectNode", "tuplet.RuleModel"),
    "command line": node("ObjectNode", "tuplet.surface.cli.app.Typer"),
    "recipe as object": node("ObjectNode", "tuplet.Recipe"),
    "recipe by its module": node(
        "ConstructorFromReduceNode", "tuplet.io.saved_models.recipes.Recipe", content=words("tree")
    ),
    "unknown recipe": node("ConstructorFromReduceNode", "tuplet.Recipe", content=words("bomb")),
    "bad recipe": node("ConstructorFromReduceNode", "tuplet.Recipe", content=words("tree")),
    "partial": node(
        "PartialNode",
        "functools.partial",
        content={
            "func": node("FunctionNode", "os.system"),
            "args": words(COMMAND),
            "kwds": node(
                "DictNode",
                "builtins.dict",
                content={},
                key_types=node("ListNode", "builtins.list", content=[]),
            ),
            "namespace": node("JsonNode", "builtins.str", content="null"),
        },
    ),
    "method": node(
        "MethodNode",
        "sklearn.naive_bayes.GaussianNB",
        content={"func": "fit", "obj": node("ObjectNode", "sklearn.naive_bayes.GaussianNB")},
    ),
    "operator": node("OperatorFuncNode", "operator.methodcaller", attrs=words("system", COMMAND)),
    "cached": node("CachedNode", "builtins.str"),
    "default": node("DefaultDictNode", "collections.defaultdict", content={}),
    "no estimator": node("ObjectNode", "sklearn.datasets._base.RemoteFileMetadata"),
    "raw tree": node("TreeNode", "sklearn.tree._tree.Tree", content=words(), __reduce__={"args": words()}),
    "unknown loader": node("EvilNode", "builtins.str"),
    "no type": {"__loader__": "JsonNode", "content": "1"},
    "transformer": node(
        "ObjectNode",
        "sklearn.preprocessing._function_transformer.FunctionTransformer",
        content=keyed(node("TypeNode", "builtins.str"), "func")
        | {"content": {"func": node("FunctionNode", "os.system") | {"__id__": 6}}, "__id__": 7},
    ),
    "generator": node(
        "RandomGeneratorNode",
        "numpy.random._generator.Generator",
        content={"bit_generator": words("seed"), "seed_seq": words()},
    ),
    "file elsewhere": node("NdArrayNode", "numpy.ndarray", type="numpy", file="../../etc/passwd"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_file_executes_nothing(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = saved(tmp_path)
    forge(path, schema=lambda tree: attributes(tree).update(estimator=FORGERIES[name]))
    with pytest.raises(ModelFileError) as error:
        load_model(path)
    assert error.value.__cause__ is None
    assert list(tmp_path.iterdir()) == [path]


def test_types_of_tuplet_cannot_be_trusted_by_their_modules(tmp_path):
    path = saved(tmp_path)
    for name in ("tuplet.models.chain.ChainClassifier", "tuplet.models.rules.model.RuleModel"):
        forge(
            path, schema=lambda tree, name=name: attributes(tree).update(estimator=node("ObjectNode", name))
        )
        with pytest.raises(ModelFileError, match="not a registered type"):
            load_model(path, trusted=[name])


def test_a_registered_name_would_load(tmp_path):
    path = saved(tmp_path)
    forge(path, schema=lambda tree: attributes(tree).update(estimator=node("ObjectNode", "tuplet.Hamming")))
    assert type(load_model(path).estimator) is Hamming


def test_a_harmless_forgery_would_load(tmp_path):
    path = saved(tmp_path)
    harmless = keyed(node("TypeNode", "builtins.int"), "5")
    forge(path, schema=lambda tree: attributes(tree).update(estimator=harmless))
    assert load_model(path).estimator == {5: 1}


def test_the_same_number_cannot_stand_for_two_things(tmp_path):
    path = saved(tmp_path)
    trick = keyed(node("TypeNode", "builtins.str"), "a")
    trick["key_types"]["__id__"] = 77
    others = node("ListNode", "builtins.list", content=[]) | {"__id__": 77}
    forge(path, schema=lambda tree: attributes(tree).update(estimator=trick, n_jobs=others))
    with pytest.raises(ModelFileError, match="for another object"):
        load_model(path)


def test_old_protocols_of_skops_are_refused(tmp_path):
    path = saved(tmp_path)
    forge(path, schema=lambda tree: tree.update(protocol=0))
    with pytest.raises(ModelFileError, match="protocol of skops"):
        load_model(path)


def test_a_forged_root_is_no_model(tmp_path):
    path = saved(tmp_path)
    harmless = node("JsonNode", "builtins.str", content="1") | {"protocol": 2}
    forge(path, schema=lambda tree: harmless)
    with pytest.raises(ModelFileError, match="not hold a model"):
        load_model(path)


def arrays_of(path):
    with zipfile.ZipFile(path) as archive:
        inner = zipfile.ZipFile(io.BytesIO(archive.read("model.skops")))
    return {name: inner.read(name) for name in inner.namelist() if name.endswith(".npy")}


def npy(array, **settings):
    buffer = io.BytesIO()
    np.save(buffer, array, **settings)
    return buffer.getvalue()


def test_arrays_that_are_not_what_they_say_are_refused(tmp_path):
    path = saved(tmp_path)
    original = path.read_bytes()
    name, good = next(iter(arrays_of(path).items()))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)})
    pickled = npy(np.array([print], dtype=object), allow_pickle=True)
    huge, strange = header.getvalue() + bytes(8), b"\x93NUMPY\x09\x00" + good
    for content in (pickled, huge, strange, good[:-1], good + b"\0", b""):
        path.write_bytes(original)
        forge(path, members={name: content})
        with pytest.raises(ModelFileError):
            load_model(path)


@pytest.mark.parametrize(
    ("field", "value"), [("left_child", 99), ("right_child", 0), ("feature", 7), ("feature", -5)]
)
def test_trees_that_lead_nowhere_are_refused(field, value, tmp_path):
    path = saved(tmp_path)
    for name, content in arrays_of(path).items():
        nodes = np.load(io.BytesIO(content))
        if nodes.dtype.names and field in nodes.dtype.names:
            nodes[field][0] = value
            forge(path, members={name: npy(nodes)})
    with pytest.raises(ModelFileError, match="invalid indices"):
        load_model(path)


def test_boosted_trees_that_lead_nowhere_are_refused(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 4))
    model = IndependentClassifier(HistGradientBoostingClassifier(max_iter=1, min_samples_leaf=5))
    model.fit(X, X[:, :2] > 0)
    for field, value in (("left", 10**6), ("feature_idx", 50), ("right", 0)):
        path = saved(tmp_path, model)
        for name, content in arrays_of(path).items():
            nodes = np.load(io.BytesIO(content))
            if nodes.dtype.names and field in nodes.dtype.names:
                nodes[field][nodes["is_leaf"] == 0] = value
                forge(path, members={name: npy(nodes)})
        with pytest.raises(ModelFileError, match="invalid indices"):
            load_model(path)


def test_sparse_matrices_that_lead_nowhere_are_refused(tmp_path):
    model = PriorClassifier().fit(X4, Y4)
    model.thing_ = sparse.csr_array(np.eye(3, dtype=np.float32))
    path = saved(tmp_path, model)
    original, arrays = path.read_bytes(), {n: np.load(io.BytesIO(c)) for n, c in arrays_of(path).items()}
    indices = {name: array for name, array in arrays.items() if array.dtype == np.int32}
    assert len(indices) == 2
    for name, array in indices.items():
        path.write_bytes(original)
        forge(path, members={name: npy(np.full_like(array, 10**6))})
        with pytest.raises(ModelFileError):
            load_model(path)
