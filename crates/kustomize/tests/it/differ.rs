//! Random trees, built by this crate and by kustomize itself: both must print the same bytes, or both must fail.
//!
//! `make test` tries a few fixed trees. `WEIR_FUZZ_TREES` or `WEIR_FUZZ_SECONDS` ask for more, with new ones, and
//! `WEIR_FUZZ_DIFFERENCES` for more than the first difference. A tree with a difference is shrunk and left in
//! `target/kustomize-difference`; `WEIR_FUZZ_SEED` is its seed.

mod dice;
mod layers;
mod objects;
mod patches;
mod shrink;
mod tame;

use std::{
    env, fs,
    io::Write as _,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant, SystemTime},
};

use kustomize::{LoadRestriction, Options, SortOrder, build};
use tree::{Budget, Disk, Limits, TreePath};

use dice::Dice;
use layers::{File, Files};

/// The default number of trees.
const FEW: u64 = 60;
const LIMIT: Duration = Duration::from_secs(20);

/// Our outcome for a panic.
const PANIC: &str = "ours panics";
const ONLY_OURS_FAILS: &str = "only ours fails";

/// The output or the error.
type Outcome = Result<String, String>;

struct Pair {
    ours: Outcome,
    theirs: Outcome,
}

impl Pair {
    /// Names the difference of the outcomes in a word; differences with other names are other differences.
    fn difference(&self) -> Option<&'static str> {
        match (&self.ours, &self.theirs) {
            (Err(error), _) if error == PANIC => Some(PANIC),
            (Ok(_), Err(_)) => Some("only the original fails"),
            (Err(_), Ok(_)) => Some(ONLY_OURS_FAILS),
            (Ok(ours), Ok(theirs)) if ours != theirs => Some("the outputs differ"),
            _ => None,
        }
    }
}

#[derive(Clone, Copy)]
struct Choice {
    legacy: bool,
    open: bool,
}

impl Choice {
    fn of(seed: u64) -> Self {
        Self {
            legacy: seed.is_multiple_of(3),
            open: seed.is_multiple_of(5),
        }
    }
}

/// A directory in which trees are written and built.
struct Rig {
    original: PathBuf,
    dir: PathBuf,
}

impl Rig {
    fn write(&self, files: &Files) {
        let _ = fs::remove_dir_all(&self.dir);
        for (path, file) in files {
            let path = self.dir.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let text = match file {
                File::Documents(documents) => documents
                    .iter()
                    .map(layers::print)
                    .collect::<Vec<_>>()
                    .join("---\n"),
                File::Text(text) => text.clone(),
            };
            fs::write(path, text).unwrap();
        }
    }

    fn build(&self, files: &Files, seed: u64) -> Pair {
        self.write(files);
        let choice = Choice::of(seed);
        Pair {
            ours: self.ours(choice),
            theirs: self.theirs(choice),
        }
    }

    /// Returns true if a smaller tree differs in the same way. The original takes longer, and is only run if necessary.
    fn still_differs(&self, files: &Files, seed: u64, kind: &str) -> bool {
        self.write(files);
        let choice = Choice::of(seed);
        let ours = self.ours(choice);
        if ours.is_err() != matches!(kind, ONLY_OURS_FAILS | PANIC) {
            return false;
        }
        let theirs = self.theirs(choice);
        Pair { ours, theirs }.difference() == Some(kind)
    }

    fn theirs(&self, choice: Choice) -> Outcome {
        let order = if choice.legacy {
            "--reorder=legacy"
        } else {
            "--reorder=none"
        };
        let restrictor = if choice.open { "None" } else { "RootOnly" };
        let output = Command::new(&self.original)
            .arg("build")
            .arg(self.dir.join("top"))
            .arg(order)
            .arg(format!("--load-restrictor=LoadRestrictions{restrictor}"))
            .env_clear()
            .output()
            .unwrap();
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }

    fn ours(&self, choice: Choice) -> Outcome {
        let options = Options {
            order: if choice.legacy {
                SortOrder::Legacy
            } else {
                SortOrder::Accumulated
            },
            load_restriction: if choice.open {
                LoadRestriction::None
            } else {
                LoadRestriction::RootOnly
            },
            ..Options::default()
        };
        let ours = catch_unwind(AssertUnwindSafe(|| ours(&self.dir, &options)));
        ours.unwrap_or_else(|_| Err(PANIC.to_owned()))
    }
}

fn ours(dir: &Path, options: &Options<'_>) -> Outcome {
    let tree = Disk::open(dir, &Limits::default()).unwrap();
    let budget = Budget::default().with_timeout(LIMIT);
    let top = TreePath::parse("top").unwrap();
    match build(&tree, &top, options, &budget) {
        Ok(built) => Ok(built.to_yaml()),
        Err(error) => Err(error.to_string()),
    }
}

fn show(outcome: &Outcome) -> String {
    match outcome {
        Ok(text) => text.clone(),
        Err(error) => format!("Error: {error}"),
    }
}

/// Describes a tree with a difference.
fn describe(rig: &Rig, files: &Files, seed: u64, kind: &str) -> String {
    let small = shrink::smallest(files, |files| rig.still_differs(files, seed, kind));
    let pair = rig.build(&small, seed);
    fs::write(rig.dir.join("ours.txt"), show(&pair.ours)).unwrap();
    fs::write(rig.dir.join("original.txt"), show(&pair.theirs)).unwrap();
    let mut text = format!(
        "WEIR_FUZZ_SEED={seed}: {kind}; the tree is in {}",
        rig.dir.display()
    );
    if let (Ok(ours), Ok(theirs)) = (&pair.ours, &pair.theirs) {
        let mut lines = ours.lines().zip(theirs.lines()).enumerate();
        if let Some((line, (ours, theirs))) = lines.find(|(_, (ours, theirs))| ours != theirs) {
            text.push_str(&format!(
                "\n  line {}: {ours:?}, the original has {theirs:?}",
                line + 1
            ));
        }
    } else {
        let error = pair.ours.err().or(pair.theirs.err()).unwrap_or_default();
        text.push_str(&format!("\n  {}", error.trim_end()));
    }
    text
}

struct Plan {
    seed: u64,
    trees: u64,
    until: Option<Instant>,
    asked: bool,
}

impl Plan {
    fn from_environment() -> Self {
        let number = |name: &str| env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let (trees, seconds) = (number("WEIR_FUZZ_TREES"), number("WEIR_FUZZ_SECONDS"));
        let asked = trees.is_some() || seconds.is_some();
        let now = || SystemTime::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_secs());
        Self {
            seed: number("WEIR_FUZZ_SEED").unwrap_or_else(|| if asked { now() } else { 0 }),
            trees: trees.unwrap_or(if asked { u64::MAX } else { FEW }),
            until: seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)),
            asked,
        }
    }
}

#[test]
fn random_trees_build_as_in_the_original() {
    let plan = Plan::from_environment();
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/kustomize-difference");
    let _ = fs::remove_dir_all(&target);
    fs::create_dir_all(&target).unwrap();
    let target = target.canonicalize().unwrap();
    let original = testkit::oracle::kustomize().unwrap();
    let (mut built, mut failed, mut differences) = (0_u64, 0_u64, Vec::new());
    let most = env::var("WEIR_FUZZ_DIFFERENCES").map_or(1, |text| text.parse().unwrap());
    for seed in plan.seed..plan.seed.saturating_add(plan.trees) {
        let is_late = plan.until.is_some_and(|until| Instant::now() > until);
        if is_late || differences.len() >= most {
            break;
        }
        let files = layers::tree(&mut Dice::new(seed));
        let rig = Rig {
            original: original.clone(),
            dir: target.join(seed.to_string()),
        };
        let pair = rig.build(&files, seed);
        match pair.difference() {
            Some(kind) => differences.push(describe(&rig, &files, seed, kind)),
            None => {
                *if pair.ours.is_ok() {
                    &mut built
                } else {
                    &mut failed
                } += 1;
                let _ = fs::remove_dir_all(&rig.dir);
            }
        }
    }
    let line = format!(
        "kustomize-fuzz: {} trees from WEIR_FUZZ_SEED={} on: {built} printed the same, {failed} failed with both, {} differ",
        built + failed + differences.len() as u64,
        plan.seed,
        differences.len()
    );
    if plan.asked {
        let _ = writeln!(std::io::stderr(), "{line}");
    } else {
        println!("{line}");
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
