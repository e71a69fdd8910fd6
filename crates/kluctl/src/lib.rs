//! kluctl projects: targets, args, vars, deployment items, rendering
