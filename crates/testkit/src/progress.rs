//! Prints progress for people.

use std::{collections::VecDeque, io::Write as _, thread::available_parallelism, time::Duration};

use crate::gobuild::Recipe;

pub fn say(line: impl std::fmt::Display) {
    // A closed standard error must not end the program.
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// The builds that are left, and the speed of this machine.
pub(crate) struct Progress {
    /// Usual seconds of the current build and of those after it.
    left: VecDeque<f64>,
    /// Usual and measured seconds of the finished builds. Before the first end they are a guess by the number of cores.
    usual: f64,
    measured: f64,
}

impl Progress {
    pub(crate) fn new<'a>(recipes: impl IntoIterator<Item = &'a Recipe>) -> Self {
        let cores = available_parallelism().map_or(2, usize::from);
        Self {
            left: recipes
                .into_iter()
                .map(|recipe| f64::from(recipe.seconds))
                .collect(),
            usual: 1.0,
            measured: 2.0 / f64::from(u32::try_from(cores).unwrap_or(u32::MAX)),
        }
    }

    pub(crate) fn finish(&mut self, elapsed: Duration) {
        self.usual += self.left.pop_front().unwrap_or_default();
        self.measured += elapsed.as_secs_f64();
    }

    /// Describes the time until the end of all builds, when the current one has run for some time.
    pub(crate) fn left(&self, elapsed: Duration) -> String {
        let mut builds = self
            .left
            .iter()
            .map(|seconds| seconds * self.measured / self.usual);
        let current = builds.next().unwrap_or_default();
        let seconds = (current - elapsed.as_secs_f64()).max(0.0) + builds.sum::<f64>();
        match seconds {
            ..5.0 => "nearly done".to_owned(),
            ..90.0 => format!("about {:.0} s left", (seconds / 5.0).round() * 5.0),
            _ => format!("about {:.0} min left", seconds / 60.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_left_follows_the_speed_of_the_machine() {
        let mut progress = Progress {
            left: VecDeque::from([60.0, 120.0, 30.0]),
            usual: 1.0,
            measured: 1.0,
        };
        let left = |progress: &Progress, seconds: u64| progress.left(Duration::from_secs(seconds));
        assert_eq!(left(&progress, 0), "about 4 min left");
        assert_eq!(left(&progress, 30), "about 3 min left");
        assert_eq!(left(&progress, 90), "about 2 min left");
        progress.finish(Duration::from_secs(121));
        assert_eq!(left(&progress, 0), "about 5 min left");
        progress.finish(Duration::from_secs(241));
        assert_eq!(left(&progress, 10), "about 50 s left");
        assert_eq!(left(&progress, 100), "nearly done");
    }
}
