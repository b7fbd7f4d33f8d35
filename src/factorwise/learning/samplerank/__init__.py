"""SampleRank and its rivals: learners that walk over worlds, and what they are told is better."""
