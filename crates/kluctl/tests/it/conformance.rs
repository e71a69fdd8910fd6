//! Recorded renders; see [`testkit::conformance`].

use std::{fs, path::Path, sync::Arc};

use bytes::Bytes;
use kluctl::{FixedImage, Rendered, Request, add_argument, list_images, list_targets, render};
use testkit::conformance::Recordings;
use tree::{Budget, Tree, TreePath};
use yaml::{Map, Value};

use crate::support::{Environment, Overrides, charts, read_dir};

/// Outcome of a case; the error describes the difference.
type Outcome = Result<(), String>;

/// A command line, taken apart.
struct Command {
    name: String,
    request: Request,
    simple: bool,
    only_names: bool,
    /// The project directory, relative to the folder of the project.
    dir: String,
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

/// Takes a command line apart; an error is what the command would say about it.
fn command(words: &[String], project: &Path) -> Result<Command, String> {
    let mut request = Request {
        charts: charts(),
        ..Request::default()
    };
    let (mut simple, mut only_names) = (false, false);
    let mut dir = String::new();
    let mut overrides = Overrides::default();
    let mut words = words.iter().map(String::as_str);
    let name = words.next().unwrap_or_default().to_owned();
    let mut from_files = Map::new();
    while let Some(word) = words.next() {
        if matches!(
            word,
            "--print-all" | "--offline-kubernetes" | "--simple" | "--only-names"
        ) {
            simple |= word == "--simple";
            only_names |= word == "--only-names";
            continue;
        }
        let value = words
            .next()
            .ok_or_else(|| format!("{word} needs a value"))?
            .to_owned();
        let directory = |value: &str| {
            let (from, to) = value
                .split_once('=')
                .ok_or_else(|| format!("{value} is not an override"))?;
            let to = project.join(to.trim_start_matches("<PROJECT>/"));
            Ok::<_, String>((from.to_owned(), to))
        };
        let path = |value: &str| TreePath::parse(value).map_err(|error| error.to_string());
        let inclusion = &mut request.inclusion;
        match word {
            "--kubernetes-version" => request.charts.kube_version = Some(value),
            "--local-git-override" | "--local-git-group-override" => overrides.git.push(directory(&value)?),
            "--local-oci-override" | "--local-oci-group-override" => overrides.oci.push(directory(&value)?),
            "-c" | "--project-config" => request.project_file = Some(path(&value)?),
            "--project-dir" => dir = value,
            "-t" | "--target" => request.target = Some(value),
            "-T" | "--target-name-override" => request.target_name_override = Some(value),
            "--discriminator" => request.discriminator = Some(value),
            "-I" | "--include-tag" => inclusion.include_tags.push(value),
            "-E" | "--exclude-tag" => inclusion.exclude_tags.push(value),
            "--include-deployment-dir" => inclusion.include_dirs.push(value),
            "--exclude-deployment-dir" => inclusion.exclude_dirs.push(value),
            "-F" | "--fixed-image" => request
                .images
                .push(FixedImage::parse(&value).map_err(|error| error.to_string())?),
            "--fixed-images-file" => {
                let file = project.join(value.trim_start_matches("<PROJECT>/"));
                let text = fs::read(&file).map_err(|error| error.to_string())?;
                let images = FixedImage::read_list(&TreePath::root(), &text, &Budget::default());
                request.images.extend(images.map_err(|error| error.to_string())?);
            }
            "-a" | "--arg" => {
                let read = |file: &str| {
                    fs::read(project.join(file))
                        .map_err(|error| kluctl::ArgumentError::new(format!("open {file}: {error}")))
                };
                add_argument(&mut request.args, &value, &read, &Budget::default())
                    .map_err(|error| error.to_string())?;
            }
            "--args-from-file" => {
                let file = project.join(value.trim_start_matches("<PROJECT>/"));
                for (key, value) in read_yaml(&file).as_map().into_iter().flatten() {
                    from_files.insert(key, value.clone());
                }
            }
            _ => return Err(format!("{word} is not a known flag")),
        }
    }
    request.sources = Some(Arc::new(overrides));
    for (key, value) in from_files {
        request.args.insert(key, value);
    }
    Ok(Command {
        name,
        request,
        simple,
        only_names,
        dir,
    })
}

fn compare(rendered: &Rendered, expected: &Path) -> Outcome {
    let text = fs::read(expected).map_err(|error| format!("{}: {error}", expected.display()))?;
    let documents = yaml::read::kustomize_all(text, &Budget::default()).unwrap();
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
        return Ok(());
    }
    let different = got.iter().zip(&expected).find(|(got, expected)| got != expected);
    Err(match different {
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

/// Runs a command and compares its output; the error is the error of the command.
fn execute(case: &Path, project: &Path, description: &Value) -> Result<Outcome, String> {
    let mut command = command(&strings(description.get("command")), project)?;
    let env = description
        .get("env")
        .and_then(Value::as_map)
        .into_iter()
        .flatten();
    let env: Vec<(String, String)> = env
        .map(|(key, value)| (key.to_owned(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    command.request.decrypt = decryption(&env);
    command.request.keep_files = true;
    command.request.vars = Some(Arc::new(Environment(env)));
    let tree: Arc<dyn Tree> = Arc::new(read_dir(&project.join(&command.dir)));
    let (request, budget) = (&command.request, Budget::default());
    let words = |error: kluctl::Error| error.to_string();
    let expected = case.join("expected");
    match command.name.as_str() {
        "render" => {
            let rendered = render(tree, request, &budget).map_err(words)?;
            Ok(compare(&rendered, &expected.join("objects.yaml"))
                .and_then(|()| warnings(&rendered, description))
                .and_then(|()| files(case, &rendered, description)))
        }
        "list-images" => {
            let rendered = render(tree, request, &budget).map_err(words)?;
            let listed = list_images(&rendered, &[], command.simple);
            Ok(same(&listed, &expected.join("stdout.txt")))
        }
        "list-targets" => {
            let (targets, _) = list_targets(&tree, request, &budget).map_err(words)?;
            if command.only_names {
                let names = targets.as_seq().unwrap_or_default().iter();
                let names = names.filter_map(|target| target.get("name").and_then(Value::as_str));
                let got: String = names.map(|name| format!("{name}\n")).collect();
                let expected = fs::read_to_string(expected.join("stdout.txt")).unwrap_or_default();
                return Ok((got == expected)
                    .then_some(())
                    .ok_or_else(|| format!("got {got:?} expected {expected:?}")));
            }
            Ok(same(&targets, &expected.join("stdout.txt")))
        }
        other => Err(format!("{other} is not a known command")),
    }
}

/// Returns a decryption with the keys of an environment.
fn decryption(env: &[(String, String)]) -> Option<Arc<dyn kluctl::Decrypt>> {
    Some(Arc::new(Decryption {
        keys: secrets::Keys::from_environment(secrets::Ambient::new(env.iter().cloned())),
        cache: secrets::Cache::default(),
    }))
}

/// Decrypts with keys that need no network.
struct Decryption {
    keys: secrets::Keys,
    cache: secrets::Cache,
}

impl kluctl::Decrypt for Decryption {
    fn decrypt(&self, file: kluctl::Encrypted<'_>) -> Result<Option<Bytes>, kluctl::CallbackError> {
        let format = secrets::Format::of_name(file.path.as_str());
        if format == secrets::Format::Binary {
            return Ok(None);
        }
        let session = secrets::Session::new(&self.keys, &self.cache);
        let budget = Budget::default();
        let opening = session.open(format, file.content, || secrets::Original::Unknown, &budget);
        let opened = futures::executor::block_on(opening).map_err(kluctl::CallbackError::from_display)?;
        Ok(opened.map(|opened| Bytes::from(opened.content)))
    }
}

fn same(got: &Value, expected: &Path) -> Outcome {
    let expected = from(Json(read_yaml(expected).to_json()));
    let got = from(Json(got.to_json()));
    if got == expected {
        return Ok(());
    }
    Err(format!("got {} expected {}", got.to_json(), expected.to_json()))
}

fn warnings(rendered: &Rendered, description: &Value) -> Outcome {
    let told = rendered.warnings.join("\n").to_lowercase();
    for fragment in strings(description.pointer(&["expect", "warnings"])) {
        if !told.contains(&fragment.to_lowercase()) {
            return Err(format!("{fragment:?} is not among the warnings: {told}"));
        }
    }
    Ok(())
}

/// The rendered files that a case names.
fn files(case: &Path, rendered: &Rendered, description: &Value) -> Outcome {
    for name in strings(description.pointer(&["expect", "render_files"])) {
        let expected =
            fs::read(case.join("expected/render-dir").join(&name)).map_err(|error| error.to_string())?;
        let files = rendered.files.as_ref().ok_or("no files were kept")?;
        let path = TreePath::parse(&format!("0/{name}")).map_err(|error| error.to_string())?;
        let found = files.read(&path).map_err(|error| error.to_string())?;
        if found != expected {
            return Err(format!("{name} is {}", String::from_utf8_lossy(&found)));
        }
    }
    Ok(())
}

fn run(case: &Path) -> Outcome {
    let description = read_yaml(&case.join("case.yaml"));
    let result = execute(case, &case.join("project"), &description);
    let fails = description.pointer(&["expect", "exit"]).and_then(Value::as_str) == Some("error");
    match result {
        Err(text) if fails => {
            let text = text.to_lowercase();
            let fragments = strings(description.pointer(&["expect", "error_fragments"]));
            let missing = fragments
                .iter()
                .find(|fragment| !text.contains(&fragment.to_lowercase()));
            missing.map_or(Ok(()), |fragment| Err(format!("{fragment:?} is not in {text}")))
        }
        Err(error) => Err(format!("failed: {error}")),
        Ok(_) if fails => Err("must fail".to_owned()),
        Ok(outcome) => outcome,
    }
}

#[test]
fn recorded_renders() {
    let Some(recordings) = Recordings::find("kluctl/cases/render") else {
        return;
    };
    let (mut passed, mut lines) = (0, Vec::new());
    for case in &recordings.entries().unwrap() {
        let name = case.file_name().unwrap().to_string_lossy();
        match run(case) {
            Ok(()) => passed += 1,
            Err(why) => lines.push(format!("{name}\t{why}")),
        }
    }
    recordings.conclude(&[("kluctl-render", passed, &lines)]);
}
