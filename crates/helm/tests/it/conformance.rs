//! Recorded renders; see [`testkit::conformance`].
//!
//! Each render is compared twice: its documents as YAML, and the printed bytes. A render that must fail is compared by its failure,
//! then by its message.

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use helm::HelmVersion;
use testkit::conformance::Recordings;
use tree::{Budget, Disk, Limits, TreePath};
use yaml::Value;

use crate::options::{Fixed, parse};

/// Timeout of a render.
const LIMIT: Duration = Duration::from_secs(300);

fn render(case: &Path, variant: &Path, helm: HelmVersion) -> Result<String, String> {
    let text = fs::read_to_string(variant.join("args.txt")).map_err(|error| error.to_string())?;
    let arguments: Vec<String> = text.lines().map(str::to_owned).collect();
    let environment = Fixed::default();
    let read = |name: &str| {
        let found = fs::read(case.join(name)).map_err(|error| format!("open {name}: {error}"))?;
        Ok(found.into())
    };
    let mut line = parse(&arguments, case, &environment, &read)?;
    line.options.helm_version = helm;
    let tree = Disk::open(case, &Limits::default()).map_err(|error| error.to_string())?;
    let path = TreePath::parse(&line.chart).map_err(|error| error.to_string())?;
    let budget = Budget::default().with_timeout(LIMIT);
    let work = AssertUnwindSafe(|| helm::template(&tree, &path, &line.options, &budget));
    match catch_unwind(work) {
        Ok(Ok(rendered)) => Ok(rendered.to_yaml().to_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("PANIC".to_owned()),
    }
}

/// Splits an output into documents with their separators.
fn documents(output: &str) -> Vec<String> {
    let mut documents = vec![String::new()];
    for line in output.lines() {
        let separates = line == "---" || line.starts_with("--- ");
        if separates && documents.last().is_some_and(|last| !last.trim().is_empty()) {
            documents.push(String::new());
        }
        let last = documents.last_mut().unwrap();
        last.push_str(line);
        last.push('\n');
    }
    documents
}

/// Parses a document, and returns it with the template in its comment.
fn read(document: &str) -> (Result<Value, String>, Vec<&str>) {
    let sources = document
        .lines()
        .filter(|line| line.starts_with("# Source: "))
        .collect();
    let value = yaml::read::goyaml_lenient(document, &Budget::default());
    (
        value
            .map(|document| document.value)
            .map_err(|error| error.to_string()),
        sources,
    )
}

/// Returns the parts that differ from run to run.
fn volatile(case: &Path, variant: &str) -> Vec<(usize, Vec<String>)> {
    let text = fs::read(case.join("case.yaml")).unwrap();
    let document = yaml::read::goyaml_lenient(text, &Budget::default()).unwrap();
    let entries = document
        .value
        .pointer(&["volatile", variant])
        .and_then(Value::as_seq)
        .unwrap_or_default();
    let part = |part: &Value| {
        part.as_str()
            .map_or_else(|| part.to_json().to_string(), str::to_owned)
    };
    let entry = |entry: &Value| {
        let document = entry.get("document").and_then(Value::as_u64).unwrap() as usize;
        let path = entry.get("path").and_then(Value::as_seq).unwrap_or_default();
        (document, path.iter().map(part).collect())
    };
    entries.iter().map(entry).collect()
}

/// Replaces a part that may differ by a constant; it must exist.
fn mask(value: &mut Value, path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match value.pointer_mut(&path) {
        Some(entry) => {
            *entry = Value::from("(any)");
            true
        }
        None => false,
    }
}

fn judge_documents(got: &str, expected: &str, volatile: &[(usize, Vec<String>)]) -> Option<String> {
    let (got, expected) = (documents(got), documents(expected));
    for (n, (got, expected)) in got.iter().zip(&expected).enumerate() {
        let ((mut one, ours), (mut other, theirs)) = (read(got), read(expected));
        if ours != theirs {
            return Some(format!("document {n}: got {ours:?} expected {theirs:?}"));
        }
        for (_, path) in volatile.iter().filter(|(document, _)| *document == n) {
            for value in [&mut one, &mut other]
                .into_iter()
                .filter_map(|value| value.as_mut().ok())
            {
                if !mask(value, path) {
                    return Some(format!("document {n}: {path:?} is absent"));
                }
            }
        }
        if one != other {
            return Some(format!("document {n} {theirs:?}: {}", difference(got, expected)));
        }
    }
    (got.len() != expected.len()).then(|| format!("got {} documents, expected {}", got.len(), expected.len()))
}

fn difference(got: &str, expected: &str) -> String {
    let mut both = got.lines().zip(expected.lines()).enumerate();
    match both.find(|(_, (got, expected))| got != expected) {
        Some((line, (got, expected))) => format!("line {}: got {got:?} expected {expected:?}", line + 1),
        None => format!(
            "got {} lines, expected {}",
            got.lines().count(),
            expected.lines().count()
        ),
    }
}

/// A recorded render: the directory of its case, its own with the arguments, and the one of the recorded results.
struct Job {
    case: PathBuf,
    variant: PathBuf,
    expected: PathBuf,
    helm: HelmVersion,
}

/// Moves the volatile parts to the positions of their documents in a recording of Helm 4, which orders documents otherwise. Both
/// recordings name the template of each document; documents of one template have the same order in both.
fn moved(volatile: &[(usize, Vec<String>)], from: &str, to: &str) -> Vec<(usize, Vec<String>)> {
    let identities = |output: &str| {
        let mut seen = Vec::new();
        for document in documents(output) {
            let (value, sources) = read(&document);
            let value = value.unwrap_or_default();
            let text = |path: &[&str]| value.pointer(path).and_then(Value::as_str).map(str::to_owned);
            let identity = (sources.concat(), text(&["kind"]), text(&["metadata", "name"]));
            let earlier = seen.iter().filter(|(other, _)| *other == identity).count();
            seen.push((identity, earlier));
        }
        seen
    };
    let (from, to) = (identities(from), identities(to));
    let position = |n: usize| {
        let wanted = from.get(n)?;
        let (source, kind, _) = &wanted.0;
        let same = to.iter().position(|one| one == wanted);
        // Its name may be volatile, too.
        same.or_else(|| {
            to.iter()
                .position(|((other, same, _), _)| other == source && same == kind)
        })
    };
    volatile
        .iter()
        .filter_map(|(document, path)| Some((position(*document)?, path.clone())))
        .collect()
}

/// Returns the differences of a render in documents and in bytes.
fn judge(job: &Job) -> [Option<String>; 2] {
    let (case, variant) = (&job.case, &job.variant);
    let both = |why: String| [Some(why.clone()), Some(why)];
    let name = variant.file_name().unwrap().to_string_lossy();
    let expected = fs::read_to_string(job.expected.join("expected.yaml"));
    match (render(case, variant, job.helm), expected) {
        (Err(error), Ok(_)) => both(format!("failed: {error}")),
        (Err(error), Err(_)) if error == "PANIC" => both(error),
        (Err(error), Err(_)) => {
            let words = fs::read_to_string(job.expected.join("expected-error.txt")).unwrap();
            let words = words.strip_prefix("Error: ").unwrap_or(&words);
            let words = words
                .split("\n\nUse --debug flag")
                .next()
                .unwrap_or_default()
                .trim();
            [
                None,
                (error.trim() != words).then(|| format!("error: got {error} expected {words}")),
            ]
        }
        (Ok(_), Err(_)) => both("must fail".to_owned()),
        (Ok(mut got), Ok(expected)) => {
            // These recordings were stored without carriage returns, which Helm 4 prints as Helm 3 does.
            if job.expected != *variant && !expected.contains('\r') {
                got = got.replace("\r\n", "\n");
            }
            let mut volatile = volatile(case, &name);
            if job.expected != *variant {
                let three = fs::read_to_string(variant.join("expected.yaml")).unwrap_or_default();
                volatile = moved(&volatile, &three, &expected);
            }
            let documents = judge_documents(&got, &expected, &volatile);
            let bytes = || (got != expected).then(|| difference(&got, &expected));
            let bytes = if volatile.is_empty() {
                bytes()
            } else {
                documents.clone()
            };
            [documents, bytes]
        }
    }
}

/// Runs all jobs in parallel on all processors, and returns their results in order.
pub(crate) fn at_once<J: Sync, T: Send>(jobs: &[J], work: impl Fn(&J) -> T + Sync) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(at) else { return done };
            done.push((at, work(job)));
        }
    };
    let mut done: Vec<(usize, T)> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..threads).map(|_| scope.spawn(take)).collect();
        started
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

fn sorted(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

/// Returns all renders with one version of Helm. Helm 4 is recorded where it differs from Helm 3.
fn jobs(cases: &[PathBuf], helm: HelmVersion, differing: &[PathBuf]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for case in cases {
        for variant in sorted(&case.join("renders")) {
            let names = [case, &variant].map(|path| path.file_name().unwrap().to_owned());
            let named = differing.iter().filter(|dir| dir.file_name() == Some(&names[0]));
            let mut other = named.map(|dir| dir.join(&names[1])).filter(|dir| dir.is_dir());
            jobs.push(Job {
                case: case.clone(),
                expected: other.next().unwrap_or_else(|| variant.clone()),
                variant,
                helm,
            });
        }
    }
    jobs
}

/// Judges all renders; returns the numbers of passes and the failures, in documents and in bytes.
fn judge_all(jobs: &[Job]) -> [(usize, Vec<String>); 2] {
    let judged = at_once(jobs, judge);
    let mut totals = [(0, Vec::new()), (0, Vec::new())];
    for (job, verdict) in jobs.iter().zip(judged) {
        let names = [&job.case, &job.variant].map(|path| path.file_name().unwrap().to_string_lossy());
        for ((passes, failures), why) in totals.iter_mut().zip(verdict) {
            match why {
                None => *passes += 1,
                Some(why) => failures.push(format!("{}/{}\t{why}", names[0], names[1])),
            }
        }
    }
    totals
}

#[test]
fn recorded_renders() {
    let Some(recordings) = Recordings::find("helm/cases") else {
        return;
    };
    let cases = recordings.entries().unwrap();
    let [documents, bytes] = judge_all(&jobs(&cases, HelmVersion::V3, &[]));
    recordings.conclude(&[
        ("helm", documents.0, &documents.1),
        ("helm-bytes", bytes.0, &bytes.1),
    ]);
}

#[test]
fn recorded_renders_of_helm_4() {
    let (Some(charts), Some(recordings)) = (Recordings::find("helm/cases"), Recordings::find("helm4/cases"))
    else {
        return;
    };
    let cases = charts.entries().unwrap();
    let [documents, bytes] = judge_all(&jobs(&cases, HelmVersion::V4, &recordings.entries().unwrap()));
    recordings.conclude(&[
        ("helm4", documents.0, &documents.1),
        ("helm4-bytes", bytes.0, &bytes.1),
    ]);
}
