//! Analyses, passes and pipelines over Programs.
