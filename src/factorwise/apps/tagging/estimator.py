"""`ChainCRF`: linear-chain conditional random fields with the interface of a scikit-learn estimator.

The constructor takes the parameters of sklearn-crfsuite, with the same meaning, and further ones. ``fit`` and
``predict`` take the same sentences.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from factorwise.apps.tagging.config import TrainingConfig, prior_of
from factorwise.apps.tagging.constraints import constraints_of_options
from factorwise.apps.tagging.cross_fitting import FOLDS, judged_sentences
from factorwise.apps.tagging.features import encoders
from factorwise.apps.tagging.features.matrices import MatrixEncoder
from factorwise.apps.tagging.features.word_lists import make_word_lists
from factorwise.apps.tagging.global_constraints import ConstraintSet
from factorwise.apps.tagging.global_tagger import candidates_of, constrained, constraints_of
from factorwise.apps.tagging.labels import LabelEncoder
from factorwise.apps.tagging.model_file import SavedTagger, read_tagger, write_tagger
from factorwise.apps.tagging.prediction import ChainPredictions, threads_of, warn_of_unseen
from factorwise.apps.tagging.progress import TrainingBar
from factorwise.apps.tagging.supervision import held_out_from, random_share, supervision_of
from factorwise.apps.tagging.training import (
    EncodedSentences,
    HeldOutSentences,
    Step,
    Trained,
    train,
    without_zeros,
)
from factorwise.apps.tagging.warm import EarlierFit, continued
from factorwise.errors import InvalidArgumentError, require
from factorwise.io.models.provenance import provenance
from factorwise.learning.chains.structure import Supervision
from factorwise.validation import as_whole, check_count, check_number


class ChainCRF(ChainPredictions, BaseEstimator):  # type: ignore[misc]
    """Label the tokens of sentences with a linear-chain conditional random field.

    The first parameters are those of CRFsuite, where None means its default. The parameters from ``order`` on
    are additional.

    Parameters
    ----------
    algorithm
        ``lbfgs``, ``l2sgd``, ``ap``, ``pa``, ``arow``; and ``adagrad``, ``cg``, ``newton-cg``,
        ``gradient-descent``, ``coordinate-descent``, which CRFsuite does not have.
    min_freq
        Drop pairs of attribute and label, and transitions, that occur less often.
    all_possible_states, all_possible_transitions
        Also give a weight to pairs that are not in the training data (unless ``min_freq`` drops them).
    c1, c2
        Penalty ``c1 * sum |w| + c2 * sum w**2``. If neither is given, both are 0.1 (c1 is 0 for algorithms
        without L1 penalty), and not 0 and 1 as in CRFsuite. If one is given, c1 is 0 or c2 is 0.1.
    max_iterations, epsilon, period, delta
        Stopping criteria.
    num_memories, linesearch, max_linesearch
        Settings of L-BFGS.
    calibration_eta, calibration_rate, calibration_samples, calibration_candidates, calibration_max_trials
        How l2sgd calibrates its learning rate.
    pa_type, c, error_sensitive, averaging
        Settings of the passive-aggressive algorithm.
    variance, gamma
        Settings of AROW.
    verbose
        Show a progress bar.
    model_filename
        Also save the model to this file after training. An untrained ChainCRF loads its model from it.
    keep_tempfiles, trainer_cls
        Accepted for compatibility; there are no temporary files, and the trainer cannot be replaced.
    order
        1: a label depends on the previous label; 2: on the two previous labels.
    scheme
        ``BIO`` (or ``IOB2``), ``IOB1``, ``IOE2``, ``BIOES`` (or ``IOBES``) or ``BILOU``, in either letter
        case: only label sequences that are valid in this scheme are predicted.
    forbidden
        Pairs of labels that must not be adjacent; None in a pair stands for the edge of a sentence.
    global_constraints
        Constraints on whole label sequences: a `ConstraintSet`, its text in TOML, the ``Path`` of such a
        file, or ``"auto"`` for all that the labels allow. The cost of violating each is learned from
        ``X_dev``, if given, and from the training data with ``constraint_folds``. Constraints with cost zero
        are dropped.
    constraint_folds
        Number of folds of the training data for learning the costs of constraints: each fold is scored by
        an additional chain trained on the others, and the final chain is trained on all data. 0: learn from
        ``X_dev`` alone, or from the ``validation_fraction`` held out of training.
    class_weight
        Factor on the odds by which the right label must lead in training, for each label (a softmax margin:
        labels with a weight above 1 are predicted more often); or ``"balanced"``, by rarity.
    prior_variance, prior_scale
        Variance of a Gaussian prior (instead of c2), scale of a Laplace prior (instead of c1).
    templates
        Feature templates (`TemplateSet`, text, the ``Path`` of a file, or ``"default"``): sentences then
        consist of words, or of tuples of columns.
    gazetteers
        With ``templates``: lists of phrases by name, ``{"city": ["New York", ...]}``. Whether and where a
        word occurs in such a phrase is a feature.
    word_classes
        With ``templates``: word classes by name, ``{"brown": {"cat": "0110"}}``.
    early_stopping, validation_fraction, n_iter_no_change
        Stop when the F1 on held-out sentences has not improved for this many iterations, and keep the best
        weights. The sentences come from ``X_dev``, or are a fraction of the training data.
    warm_start
        Start from the weights of the last fit. Its labels and attributes are kept, and weights for which the
        new sentences have no data stay unchanged.
    precision
        Floating-point precision of label scores: ``single`` or ``double``.
    n_jobs
        Number of threads; None or -1 for all processors. The result does not depend on it.
    random_state
        Seed of algorithms and splits that use random numbers.

    Attributes
    ----------
    classes_
        The labels.
    objective_
        The penalized objective at the learned weights; for an online algorithm, the loss of the pass that
        gave them.
    n_iter_, converged_
        Number of iterations, and whether training converged.
    training_log_
        The report of each iteration (`Step`).
    constraints_
        The constraints on whole label sequences that were kept, with their weights.

    >>> X = [[["w=the"], ["w=cat"]], [["w=a"], ["w=dog"]]]
    >>> ChainCRF().fit(X, [["D", "N"], ["D", "N"]]).predict(X)
    [['D', 'N'], ['D', 'N']]
    """

    def __init__(
        self,
        algorithm: str | None = None,
        min_freq: float | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = None,
        epsilon: float | None = None,
        period: int | None = None,
        delta: float | None = None,
        linesearch: str | None = None,
        max_linesearch: int | None = None,
        calibration_eta: float | None = None,
        calibration_rate: float | None = None,
        calibration_samples: int | None = None,
        calibration_candidates: int | None = None,
        calibration_max_trials: int | None = None,
        pa_type: int | None = None,
        c: float | None = None,
        error_sensitive: bool | None = None,
        averaging: bool | None = None,
        variance: float | None = None,
        gamma: float | None = None,
        verbose: bool = False,
        model_filename: str | PathLike[str] | None = None,
        keep_tempfiles: bool | None = False,
        trainer_cls: None = None,
        *,
        order: int = 1,
        scheme: str | None = None,
        forbidden: Collection[tuple[Any, Any]] | None = None,
        global_constraints: ConstraintSet | str | PathLike[str] | None = None,
        constraint_folds: int = FOLDS,
        class_weight: Mapping[Any, float] | str | None = None,
        prior_variance: float | None = None,
        prior_scale: float | None = None,
        templates: Any = None,
        gazetteers: Mapping[str, Iterable[str]] | None = None,
        word_classes: Mapping[str, Mapping[str, str]] | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 10,
        warm_start: bool = False,
        precision: str = "single",
        n_jobs: int | None = None,
        random_state: int | None = 0,
    ) -> None:
        self.algorithm = algorithm
        self.min_freq = min_freq
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.num_memories = num_memories
        self.epsilon = epsilon
        self.period = period
        self.delta = delta
        self.linesearch = linesearch
        self.max_linesearch = max_linesearch
        self.calibration_eta = calibration_eta
        self.calibration_rate = calibration_rate
        self.calibration_samples = calibration_samples
        self.calibration_candidates = calibration_candidates
        self.calibration_max_trials = calibration_max_trials
        self.pa_type = pa_type
        self.c = c
        self.error_sensitive = error_sensitive
        self.averaging = averaging
        self.variance = variance
        self.gamma = gamma
        self.verbose = verbose
        self.model_filename = model_filename
        self.keep_tempfiles = keep_tempfiles
        self.trainer_cls = trainer_cls
        self.order = order
        self.scheme = scheme
        self.forbidden = forbidden
        self.global_constraints = global_constraints
        self.constraint_folds = constraint_folds
        self.class_weight = class_weight
        self.prior_variance = prior_variance
        self.prior_scale = prior_scale
        self.templates = templates
        self.gazetteers = gazetteers
        self.word_classes = word_classes
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.warm_start = warm_start
        self.precision = precision
        self.n_jobs = n_jobs
        self.random_state = random_state

    # learning

    def fit(
        self,
        X: Any,
        y: Iterable[Iterable[Any]],
        X_dev: Any = None,
        y_dev: Iterable[Iterable[Any]] | None = None,
        *,
        sample_weight: Any = None,
    ) -> Self:
        """Learn from sentences and their labels.

        X
            Sentences, each a list of dictionaries, of lists of strings, or (with ``templates``) of words or
            tuples; or a matrix for each sentence, dense or sparse, with a row for each token.
        y
            The label of each token; None if it is unknown, a set if it is one of several.
        X_dev, y_dev
            Held-out sentences that are scored during training.
        sample_weight
            The weight of each sentence.
        """
        if self.trainer_cls is not None:
            raise InvalidArgumentError("trainer_cls is not supported: leave it out; the trainer is this one.")
        config, threads = self.training_config(), threads_of(self.n_jobs)
        sentences = encoders.as_training_sentences(X, self.templates)
        previous = (self.tagger_, self.encoder_) if self.warm_start and self.tagger_ is not None else None
        encoder, further = continued(
            encoders.choose_encoder(
                sentences, self.templates, make_word_lists(self.gazetteers, self.word_classes)
            ),
            previous and previous[1],
        )
        encoded = encoder.fit_encode(sentences, further=further)
        labels = LabelEncoder(previous[0].classes if previous else ())
        known = labels.fit_encode(y, encoded.start)
        names = labels.labels
        everything = EncodedSentences(
            encoded.rows,
            encoded.start,
            supervision_of(known, names, encoded.start, sample_weight, self.class_weight),
            # columns of a matrix are seldom functions of one another, and checking this takes all pairs
            None if isinstance(encoder, MatrixEncoder) else encoder.slots(),
        )
        candidates = candidates_of(self.global_constraints, names, config.order)
        folds, unknown = self.constraint_folds, candidates is not None and not candidates.learned
        require(folds == 0 or folds >= 2, "constraint_folds", folds, "0, or at least 2")
        apart = self.early_stopping or (unknown and folds == 0)
        learned_from, held_out = self._held_out(everything, encoder, labels, X_dev, y_dev, apart)
        rules = constraints_of_options(names, self.scheme, self.forbidden)
        with TrainingBar(config.max_iterations, shown=bool(self.verbose)) as bar:
            trained = train(
                learned_from,
                names,
                config,
                constraints=rules,
                held_out=held_out,
                before=previous and EarlierFit.of(*previous, encoder, names),
                watch=bar.update,
                threads=threads,
            )
        if candidates is not None:
            judged = judged_sentences(
                trained,
                held_out,
                learned_from,
                names,
                config,
                folds=folds if unknown else 0,
                constraints=rules,
                threads=threads,
            )
            trained = replace(trained, tagger=constrained(trained.tagger, candidates, judged, threads).tagger)
        return self._keep(trained, encoder, config)

    def training_config(self) -> TrainingConfig:
        """Return the settings of training, with defaults filled in and all values checked."""
        given = {
            "algorithm": self.algorithm,
            "min_freq": self.min_freq,
            "all_possible_states": self.all_possible_states,
            "all_possible_transitions": self.all_possible_transitions,
            "max_iterations": self.max_iterations,
            "memory": self.num_memories,
            "epsilon": self.epsilon,
            "period": self.period,
            "delta": self.delta,
            "linesearch": self.linesearch,
            "max_linesearch": self.max_linesearch,
            "calibration_eta": self.calibration_eta,
            "calibration_rate": self.calibration_rate,
            "calibration_samples": self.calibration_samples,
            "calibration_candidates": self.calibration_candidates,
            "calibration_max_trials": self.calibration_max_trials,
            "pa_type": self.pa_type,
            "aggressiveness": self.c,
            "error_sensitive": self.error_sensitive,
            "averaging": self.averaging,
            "variance": self.variance,
            "gamma": self.gamma,
        }
        chosen: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        return TrainingConfig(
            prior=prior_of(
                self.c1,
                self.c2,
                self.prior_scale,
                self.prior_variance,
                algorithm="lbfgs" if self.algorithm is None else str(self.algorithm),
            ),
            order=self.order,
            precision=self.precision,  # type: ignore[arg-type]
            seed=_seed(self.random_state),
            **chosen,
        )

    def _held_out(
        self,
        everything: EncodedSentences,
        encoder: encoders.Encoder,
        labels: LabelEncoder,
        X_dev: Any,
        y_dev: Any,
        apart: bool,
    ) -> tuple[EncodedSentences, HeldOutSentences | None]:
        """Return the training sentences and the held-out sentences.

        apart
            Whether to hold out some of the training data if X_dev is not given.
        """
        if (X_dev is None) != (y_dev is None):
            raise InvalidArgumentError("X_dev and y_dev belong together: give both or neither.")
        check_count("n_iter_no_change", self.n_iter_no_change)
        patience = self.n_iter_no_change if self.early_stopping else None
        if X_dev is not None:
            rows, start = encoder.encode(encoders.as_sentences(X_dev))
            others = EncodedSentences(rows, start, Supervision(self._known_codes(labels, y_dev, start)))
            if len(start) == 1 or not others.complete.any():
                raise InvalidArgumentError(
                    "no sentence of X_dev has labels for all its tokens, so that none can be scored: give one"
                    " that has."
                )
            return everything, held_out_from(others, others.complete, patience)
        if not apart:
            return everything, None
        share = self.validation_fraction
        check_number("validation_fraction", share, above=0, below=1)
        chosen = random_share(everything.complete, share, _seed(self.random_state))
        if chosen.all() or not chosen.any():
            raise InvalidArgumentError(
                f"a share of {share} of {len(chosen)} sentences, {int(everything.complete.sum())} of them"
                " with labels for all tokens, leaves none to learn from or none to score: give more"
                " sentences, or X_dev and y_dev."
            )
        return everything.taken(~chosen), held_out_from(everything, chosen, patience)

    @staticmethod
    def _known_codes(labels: LabelEncoder, y_dev: Any, start: Any) -> NDArray[np.int32]:
        """Return the codes of held-out labels; labels that the training data lack count as unknown."""
        every = LabelEncoder(labels.labels)
        codes = every.fit_encode(y_dev, start).codes
        warn_of_unseen(every.labels[len(labels.labels) :], "leaves its sentence out of the score")
        return np.where(codes < len(labels.labels), codes, np.int32(-1))

    def _read_model(self) -> None:
        if self.model_filename is None or not Path(self.model_filename).exists():
            super()._read_model()
        else:
            self._take_over(read_tagger(self.model_filename))

    def _keep(self, trained: Trained, encoder: encoders.Encoder, config: TrainingConfig) -> Self:
        tagger, encoder = without_zeros(trained.tagger, encoder)
        self.tagger_ = tagger
        self.encoder_ = encoder
        self.constraints_: ConstraintSet = constraints_of(trained.tagger)
        self.classes_ = list(trained.tagger.classes)
        self.objective_: float = trained.objective
        self.n_iter_: int = trained.n_iter
        self.converged_: bool = trained.converged
        self.training_log_: tuple[Step, ...] = trained.steps
        self.settings_: Mapping[str, Any] = {"training": config.as_dict()}
        if self.model_filename is not None:
            self.save(self.model_filename)
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file, ``NAME.fw``: JSON and arrays, no pickle."""
        tagger = self._fitted()
        training = self.settings_.get("training")
        seed = training.get("seed") if isinstance(training, Mapping) else None
        record = provenance(configuration=self.settings_, seed=seed)
        write_tagger(path, tagger, self.encoder_, self.settings_, record)

    @classmethod
    def load(cls, path: str | PathLike[str], **parameters: Any) -> Self:
        """Load a model saved with `save` or by the command line; ``parameters`` go to the constructor.

        The settings of its training are in ``settings_``; to train again with them, pass them again.
        """
        return cls.of_saved(read_tagger(path), **parameters)

    @classmethod
    def of_saved(cls, saved: SavedTagger, **parameters: Any) -> Self:
        """Return an estimator for the content of a model file; ``parameters`` go to the constructor."""
        made = cls(**parameters)
        made._take_over(saved)
        return made

    def _take_over(self, saved: SavedTagger) -> None:
        self.tagger_, self.encoder_, self.settings_ = saved.tagger, saved.encoder, saved.settings
        self.constraints_ = constraints_of(saved.tagger)
        self.classes_ = list(saved.tagger.classes)


def _seed(random_state: int | None) -> int:
    return 0 if random_state is None else as_whole("random_state", random_state)
