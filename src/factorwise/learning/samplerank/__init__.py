"""SampleRank and related learners, which walk over worlds, and the preferences from which they learn."""
