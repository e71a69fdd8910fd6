//! Load, render, compare, deploy, prune, validate and delete kluctl projects
