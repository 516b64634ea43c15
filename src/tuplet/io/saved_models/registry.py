"""Names of the types of tuplet that a model file may hold.

A file names a class of tuplet by one word and never by its module, so that modules can move without making
files unreadable. Only classes that are listed here are made from a file. A class that is part of fitted
models needs a line here: its name in files and its place, "module:class". Raise `files.FORMAT` when a name
is removed or gets another meaning, or when an older file would be misread because attributes have changed.

A class is imported when a file names it, so this module imports none of them.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

from tuplet.core.exceptions import ModelFileError

SCHEMA = "schema.json"
"""Part of a skops archive that describes the tree of objects."""

_PACKAGE = "tuplet"
_PREFIX = f"{_PACKAGE}."

OBJECTS: dict[str, str] = {
    "BeliefPropagation": "tuplet.joint.inference.belief:BeliefPropagation",
    "Exact": "tuplet.joint.inference.engine:Exact",
    "SignedElimination": "tuplet.joint.inference.signed:SignedElimination",
    "Enumerate": "tuplet.joint.policies:Enumerate",
    "MonteCarlo": "tuplet.joint.policies:MonteCarlo",
    "StratifiedFolds": "tuplet.evaluate.folds:StratifiedFolds",
    "MixedNaiveBayes": "tuplet.local.bayes:MixedNaiveBayes",
    "ManyBayes": "tuplet.local.many_bayes:ManyBayes",
    "BayesLayout": "tuplet.local.many_bayes:BayesLayout",
    "Calibration": "tuplet.local.calibration:Calibration",
    "FeatureEncoder": "tuplet.space.features.encoding:FeatureEncoder",
    "InputRange": "tuplet.space.features.scaling:InputRange",
    "LabelledClassifier": "tuplet.space.features.labelled:LabelledClassifier",
    "LimitedScaler": "tuplet.space.features.scaling:LimitedScaler",
    "ManyClassifiers": "tuplet.local.prepared:ManyClassifiers",
    "OrdinalClassifier": "tuplet.local.ordinal:OrdinalClassifier",
    "ParentsBeside": "tuplet.space.features.admit:ParentsBeside",
    "PreparedFeatures": "tuplet.local.prepared:PreparedFeatures",
    "ManyLogistic": "tuplet.local.many_logistic:ManyLogistic",
    "TransformerEncoder": "tuplet.space.features.encoding:TransformerEncoder",
    "NumberMatrix": "tuplet.space.features.matrix:NumberMatrix",
    "TableReader": "tuplet.space.features.reading:TableReader",
    "KeptColumn": "tuplet.space.features.reading:KeptColumn",
    "DroppedColumn": "tuplet.space.features.reading:DroppedColumn",
    "RowNumbers": "tuplet.space.features.reading:RowNumbers",
    "DateParts": "tuplet.space.features.dates:DateParts",
    "WrittenNumbers": "tuplet.space.features.numerals:WrittenNumbers",
    "LabelRates": "tuplet.space.features.rates:LabelRates",
    "TermWeights": "tuplet.space.features.texts:TermWeights",
    "MergedValues": "tuplet.space.features.nominal:MergedValues",
    "Nominal": "tuplet.space.features.nominal:Nominal",
    "OneHot": "tuplet.local.onehot:OneHot",
    "PrincipalColumns": "tuplet.local.columns:PrincipalColumns",
    "LogisticBaseline": "tuplet.local.shifts:Baseline",
    "ParentColumns": "tuplet.local.stacked:ParentColumns",
    "RidgeLogistic": "tuplet.local.ridge:RidgeLogistic",
    "Scaling": "tuplet.local.columns:Scaling",
    "SparseColumns": "tuplet.local.columns:SparseColumns",
    "Shifts": "tuplet.local.shifts:Shifts",
    "SmoothedClassifier": "tuplet.local.calibration:SmoothedClassifier",
    "ShiftModel": "tuplet.local.shift_model:ShiftModel",
    "SplitBase": "tuplet.local.prepared:Base",
    "SplitModel": "tuplet.local.split:SplitModel",
    "StackedModel": "tuplet.local.stacked:StackedModel",
    "TemperatureScaled": "tuplet.local.temperature:TemperatureScaled",
    "Abstain": "tuplet.losses.abstain:Abstain",
    "Absolute": "tuplet.losses.ordinal:Absolute",
    "Quantile": "tuplet.losses.ordinal:Quantile",
    "CostMatrix": "tuplet.losses.costs:CostMatrix",
    "FBeta": "tuplet.losses.fmeasure:FBeta",
    "CallableLoss": "tuplet.losses.general:CallableLoss",
    "Jaccard": "tuplet.losses.general:Jaccard",
    "Hamming": "tuplet.losses.decomposable:Hamming",
    "SubsetZeroOne": "tuplet.losses.subset:SubsetZeroOne",
    "BayesNetClassifier": "tuplet.models.bayesnet.classifier:BayesNetClassifier",
    "FittedNetwork": "tuplet.models.bayesnet.network:FittedNetwork",
    "ColumnKinds": "tuplet.models.bayesnet.network:ColumnKinds",
    "FeatureViews": "tuplet.models.bayesnet.network:FeatureViews",
    "ChainClassifier": "tuplet.models.chain:ChainClassifier",
    "DecisionClassifier": "tuplet.models.decision:DecisionClassifier",
    "GenerativeBayesNetClassifier": "tuplet.models.generative.classifier:GenerativeBayesNetClassifier",
    "Bins": "tuplet.space.features.discrete:Bins",
    "DiscreteColumns": "tuplet.space.features.discrete:DiscreteColumns",
    "DiscreteValues": "tuplet.space.features.discrete:Values",
    "InformationGainFilter": "tuplet.models.generative.selection:InformationGainFilter",
    "IndependentClassifier": "tuplet.models.independent:IndependentClassifier",
    "InstanceLogisticClassifier": "tuplet.models.compared.instance_logistic:InstanceLogisticClassifier",
    "MixtureClassifier": "tuplet.models.mixtures.mixture:MixtureClassifier",
    "ModelComponent": "tuplet.models.mixtures.mixture:ModelComponent",
    "Neighborhoods": "tuplet.models.neighborhoods:Neighborhoods",
    "NeighborClassifier": "tuplet.models.neighbors:NeighborClassifier",
    "OutputCodingClassifier": "tuplet.models.compared.output_coding:OutputCodingClassifier",
    "PairwiseField": "tuplet.models.random_field.field:PairwiseField",
    "JointPipeline": "tuplet.models.pipeline:JointPipeline",
    "PowersetClassifier": "tuplet.models.powerset:PowersetClassifier",
    "PriorClassifier": "tuplet.models.prior:PriorClassifier",
    "ProbitForestClassifier": "tuplet.models.probit.forest:ProbitForestClassifier",
    "ProbitClassifier": "tuplet.models.probit.linear:ProbitClassifier",
    "RandomFieldClassifier": "tuplet.models.random_field.classifier:RandomFieldClassifier",
    "MultiOutputModel": "tuplet.models.rules.sources:MultiOutputModel",
    "BeliefSource": "tuplet.models.rules.sources:BeliefSource",
    "RuleStackingClassifier": "tuplet.models.rules.stacking:RuleStackingClassifier",
    "SharedForestClassifier": "tuplet.models.shared_forest:SharedForestClassifier",
    "StackedFeaturesClassifier": "tuplet.models.compared.stacked_features:StackedFeaturesClassifier",
    "AutoJointClassifier": "tuplet.models.stacking.auto:AutoJointClassifier",
    "Blend": "tuplet.models.stacking.blend:Blend",
    "JointStackingClassifier": "tuplet.models.stacking.classifier:JointStackingClassifier",
    "Gate": "tuplet.models.stacking.blend:Gate",
    "GateAxes": "tuplet.models.stacking.blend:_Axes",
    "Tempering": "tuplet.models.stacking.tempering:Tempering",
    "ClassifierTree": "tuplet.models.trees.learners:ClassifierTree",
    "TreeEnsembleClassifier": "tuplet.models.trees.ensemble:TreeEnsembleClassifier",
    "LogisticTree": "tuplet.models.trees.logistic:LogisticTree",
    "TreeMixtureClassifier": "tuplet.models.trees.mixture:TreeMixtureClassifier",
    "TreeClassifier": "tuplet.models.trees.tree:TreeClassifier",
    "WeightedStackingClassifier": "tuplet.models.compared.weighted_stacking:WeightedStackingClassifier",
    "ThreePartGraph": "tuplet.models.generative.networks.three_part:ThreePartGraph",
    "ChainEnd": "tuplet.models.probit.sampling.chains:ChainEnd",
    "IdentityState": "tuplet.models.probit.sampling.correlation:IdentityState",
    "ProbitDraws": "tuplet.models.probit.sampling.draws:Draws",
    "ForestDraws": "tuplet.models.probit.sampling.forests:ForestDraws",
    "HamiltonianState": "tuplet.models.probit.sampling.correlation:HamiltonianState",
    "StepSize": "tuplet.models.probit.sampling.correlation:StepSize",
    "TogetherState": "tuplet.models.probit.sampling.together:TogetherState",
    "LinearDraws": "tuplet.models.probit.sampling.means:LinearDraws",
    "MetropolisState": "tuplet.models.probit.sampling.correlation:MetropolisState",
    "CalibratorByCategory": "tuplet.models.rules.calibration:_ByCategory",
    "DirichletCalibrator": "tuplet.models.rules.calibration:_Dirichlet",
    "IdentityCalibrator": "tuplet.models.rules.calibration:_Identity",
    "SigmoidCalibrator": "tuplet.models.rules.calibration:_Sigmoid",
    "StepCalibrator": "tuplet.models.rules.calibration:_Steps",
    "TemperatureCalibrator": "tuplet.models.rules.calibration:_Temperature",
    "And": "tuplet.models.rules.language.formula:And",
    "Iff": "tuplet.models.rules.language.formula:Iff",
    "Implies": "tuplet.models.rules.language.formula:Implies",
    "Is": "tuplet.models.rules.language.formula:Is",
    "Label": "tuplet.models.rules.language.formula:Label",
    "Not": "tuplet.models.rules.language.formula:Not",
    "Or": "tuplet.models.rules.language.formula:Or",
    "Xor": "tuplet.models.rules.language.formula:Xor",
    "LearnedRules": "tuplet.models.rules.learning.learner:Learned",
    "RuleTerm": "tuplet.models.rules.learning.evidence:Term",
    "NoisyOr": "tuplet.models.rules.language.rule:NoisyOr",
    "Rule": "tuplet.models.rules.language.rule:Rule",
    "RuleSet": "tuplet.models.rules.language.ruleset:RuleSet",
    "ClassSpace": "tuplet.space.classes:ClassSpace",
    "CandidateParents": "tuplet.structure.candidates:Candidates",
    "LocalScores": "tuplet.structure.local_scores:LocalScores",
    "FoundGraph": "tuplet.structure.search:Found",
}
"""Classes whose instances are restored by setting attributes. They define no `__new__` or `__setstate__`."""

TUPLES: dict[str, str] = {
    "FieldWeights": "tuplet.models.random_field.field:FieldWeights",
    "LabelRegression": "tuplet.models.compared.output_coding:LabelRegression",
    "MarginMetric": "tuplet.models.compared.output_coding:MarginMetric",
    "ClassComponent": "tuplet.models.generative.networks.three_part:ClassComponent",
    "Convergence": "tuplet.models.probit.sampling.summary:Convergence",
    "ForestRecord": "tuplet.models.probit.sampling.forests:ForestRecord",
    "LabelForm": "tuplet.space.containers:Form",
}
"""Named tuples."""

RECIPES: dict[str, str] = {"Recipe": "tuplet.io.saved_models.recipes:Recipe"}
"""The only class of tuplet whose constructor is called with parts of a file; it checks them."""


_BY_LOADER = {"ObjectNode": OBJECTS, "TupleNode": TUPLES, "ConstructorFromReduceNode": RECIPES}
"""How skops makes an instance: attributes are set, a named tuple is filled, the class is called."""

NAMES = {path: name for types in _BY_LOADER.values() for name, path in types.items()}
"""Registered names by the place of the class, "module:class"."""


def path_of(loader: str, type_name: str) -> tuple[str, str]:
    """Return the module and the class of a type of tuplet, by the name that a file gives it.

    Parameters
    ----------
    loader : str
        How skops would make an instance; a name is registered for one way only.
    type_name : str
        Such as "tuplet.ChainClassifier".

    Raises
    ------
    ModelFileError
        If no type is registered under the name.
    """
    path = _BY_LOADER.get(loader, {}).get(type_name.removeprefix(_PREFIX))
    if path is None:
        raise ModelFileError(
            f"The file holds an object of type {type_name!r}, which is not a registered type of this version"
            " of tuplet; read_header shows the version that wrote the file."
        )
    module, _, name = path.partition(":")
    return module, name


def is_ours(type_name: str) -> bool:
    """Whether a type belongs to tuplet."""
    return type_name.startswith(_PREFIX)


def with_names(data: bytes) -> bytes:
    """Return a model part in which types of tuplet have their registered names instead of module paths."""
    return _with_types(data, _to_name)


def with_paths(data: bytes) -> bytes:
    """Return a model part in which the types of tuplet have module paths again, for skops to import."""
    return _with_types(data, _to_path)


def _to_name(node: dict[str, Any]) -> None:
    module, name = node["__module__"], node["__class__"]
    if is_ours(f"{module}.{name}"):
        path = f"{module}:{name}"
        if path not in NAMES:
            raise ModelFileError(f"{path} is missing in tuplet.io.saved_models.registry.")
        node["__module__"], node["__class__"] = _PACKAGE, NAMES[path]


def _to_path(node: dict[str, Any]) -> None:
    full = f"{node['__module__']}.{node['__class__']}"
    if is_ours(full):
        node["__module__"], node["__class__"] = path_of(node["__loader__"], full)


def _with_types(data: bytes, translate: Callable[[dict[str, Any]], None]) -> bytes:
    """Return a copy of a model part with other type names; arrays are copied as they are."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == SCHEMA:
                schema = json.loads(content)
                for node, _ in schema_nodes(schema):
                    translate(node)
                content = json.dumps(schema).encode()
            new.writestr(name, content)
    return buffer.getvalue()


def schema_nodes(schema: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield every node of a schema at any depth, and "key" if it belongs to the types of keys of a dict."""
    waiting: list[tuple[Any, str]] = [(schema, "")]
    while waiting:
        part, role = waiting.pop()
        if isinstance(part, list):
            waiting.extend((each, role) for each in part)
        elif isinstance(part, dict):
            if isinstance(part.get("__loader__"), str):
                yield part, role
            for name, each in part.items():
                waiting.append((each, "key" if name == "key_types" and _is_dict(part) else role))


def _is_dict(state: dict[str, Any]) -> bool:
    return state.get("__loader__") == "DictNode"
