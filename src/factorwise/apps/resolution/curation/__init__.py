"""Human in the loop: records in a store, questions worth asking, and the effects of answers."""

from factorwise.apps.resolution.curation.curator import Curator, Match
from factorwise.apps.resolution.curation.questions import Question
from factorwise.apps.resolution.curation.review import Review

__all__ = ["Curator", "Match", "Question", "Review"]
