//! Recorded renders; see [`testkit::conformance`].

use std::{fs, path::Path, sync::Arc};

use kluctl::{Error, Rendered, Request, render};
use testkit::conformance::Recordings;
use tree::Budget;
use yaml::{Map, Value};

use crate::support::{Overrides, charts, read_dir};

/// How many cases pass today; it may only grow.
const PASSES: usize = 108;

/// What became of a case.
enum Outcome {
    Pass,
    Fail(String),
    /// It needs what is refused by name.
    Refused(String),
    /// Its command has flags that a render doesn't know.
    OtherCommand,
}

fn read_yaml(file: &Path) -> Value {
    yaml::read::goyaml(fs::read(file).unwrap(), &Budget::default())
        .unwrap()
        .value
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_seq).unwrap_or_default();
    items
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// The request that a command line stands for.
fn request(command: &[String], project: &Path) -> Option<Request> {
    let mut request = Request {
        charts: charts(),
        ..Request::default()
    };
    let mut overrides = Vec::new();
    let mut words = command.iter().map(String::as_str);
    if words.next() != Some("render") {
        return None;
    }
    let mut from_files = Map::new();
    while let Some(word) = words.next() {
        match word {
            "--print-all" | "--offline-kubernetes" => {}
            "--kubernetes-version" => request.charts.kube_version = Some(words.next()?.to_owned()),
            "--local-git-override" => {
                let (from, to) = words.next()?.split_once('=')?;
                let to = project.join(to.trim_start_matches("<PROJECT>/"));
                overrides.push((from.to_owned(), to));
            }
            "-t" => request.target = Some(words.next()?.to_owned()),
            "-T" => request.target_name_override = Some(words.next()?.to_owned()),
            "-a" | "--arg" => add_argument(&mut request.args, words.next()?, project)?,
            "--args-from-file" => {
                let file = project.join(words.next()?.trim_start_matches("<PROJECT>/"));
                for (key, value) in read_yaml(&file).as_map()? {
                    from_files.insert(key, value.clone());
                }
            }
            _ => return None,
        }
    }
    request.charts.pull = Some(Arc::new(Overrides(overrides)));
    for (key, value) in from_files {
        request.args.insert(key, value);
    }
    Some(request)
}

fn add_argument(args: &mut Map, argument: &str, project: &Path) -> Option<()> {
    let (name, text) = argument.split_once('=')?;
    let text = match text.strip_prefix('@') {
        Some(file) => fs::read_to_string(project.join(file)).ok()?,
        None => text
            .strip_prefix("\\@")
            .map_or_else(|| text.to_owned(), |rest| format!("@{rest}")),
    };
    let value = yaml::read::goyaml(&text, &Budget::default()).ok()?.value;
    let mut map = args;
    let mut parts = name.split('.').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            map.insert(part, value);
            return Some(());
        }
        map = map.get_or_insert_map(part)?;
    }
    None
}

fn is_refusal(error: &Error) -> bool {
    let text = error.to_string();
    text.contains("not supported yet")
}

fn compare(rendered: &Rendered, expected: &Path) -> Outcome {
    let documents = yaml::read::kustomize_all(fs::read(expected).unwrap(), &Budget::default()).unwrap();
    let expected: Vec<Value> = documents
        .into_iter()
        .map(|document| document.value.to_json().into())
        .map(from)
        .collect();
    let got: Vec<Value> = rendered
        .objects()
        .map(|object| from(Json(object.to_json())))
        .collect();
    if got == expected {
        return Outcome::Pass;
    }
    let different = got.iter().zip(&expected).find(|(got, expected)| got != expected);
    Outcome::Fail(match different {
        Some((got, expected)) => format!("got {} expected {}", got.to_json(), expected.to_json()),
        None => format!("got {} objects, expected {}", got.len(), expected.len()),
    })
}

struct Json(serde_json::Value);

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        Self(value)
    }
}

fn from(json: Json) -> Value {
    Value::from_json(json.0)
}

fn run(case: &Path) -> Outcome {
    let description = read_yaml(&case.join("case.yaml"));
    let project = case.join("project");
    let Some(request) = request(&strings(description.get("command")), &project) else {
        return Outcome::OtherCommand;
    };
    let result = render(Arc::new(read_dir(&project)), &request, &Budget::default());
    let fails = description.pointer(&["expect", "exit"]).and_then(Value::as_str) == Some("error");
    match result {
        Err(error) if is_refusal(&error) => Outcome::Refused(error.to_string()),
        Err(error) if fails => {
            let text = error.to_string().to_lowercase();
            let fragments = strings(description.pointer(&["expect", "error_fragments"]));
            match fragments
                .iter()
                .find(|fragment| !text.contains(&fragment.to_lowercase()))
            {
                Some(fragment) => Outcome::Fail(format!("{fragment:?} is not in {text}")),
                None => Outcome::Pass,
            }
        }
        Err(error) => Outcome::Fail(format!("failed: {error}")),
        Ok(_) if fails => Outcome::Fail("must fail".to_owned()),
        Ok(rendered) => compare(&rendered, &case.join("expected/objects.yaml")),
    }
}

#[test]
fn recorded_renders() {
    let Some(recordings) = Recordings::find("kluctl/cases/render") else {
        return;
    };
    let (mut passes, mut refused, mut others, mut lines) = (0, 0, 0, Vec::new());
    for case in &recordings.entries().unwrap() {
        let name = case.file_name().unwrap().to_string_lossy();
        match run(case) {
            Outcome::Pass => passes += 1,
            Outcome::OtherCommand => others += 1,
            Outcome::Refused(why) => {
                refused += 1;
                lines.push(format!("{name}\trefused\t{why}"));
            }
            Outcome::Fail(why) => lines.push(format!("{name}\tFAILED\t{why}")),
        }
    }
    recordings.report("kluctl", &lines).unwrap();
    let failed = lines.len() - refused;
    // On a line of its own, whatever the test harness says before.
    println!("\nkluctl: {passes} pass, {failed} fail, {refused} refused by name, {others} of other commands");
    assert!(
        recordings.are_elsewhere() || passes >= PASSES,
        "{passes} cases pass, it was {PASSES} before"
    );
}
