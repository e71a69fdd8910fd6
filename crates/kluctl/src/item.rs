//! Renders the directory of an item.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use bytes::Bytes;
use jinja::{IMAGE_BEGIN, Renderer};
use tree::{Budget, Mem, Tree, TreePath, ignore::Rules};
use yaml::{Map, Value};

use crate::{
    Decrypt, Error, annotations, chart::ChartFile, decrypt::Decrypting, error, files, plan::PlanItem,
};

/// The objects of an item, among the output files.
const RENDERED: &str = ".rendered.yml";

/// Rendered directories of one source, all in one tree, so that they can name each other.
pub(crate) struct ItemWorkspace<'a> {
    tree: Arc<dyn Tree>,
    budget: &'a Budget,
    decrypt: Option<&'a dyn Decrypt>,
    pub(crate) rendered: Mem,
    /// Paths in the source of rendered files that have another path.
    moved: HashMap<TreePath, TreePath>,
    pub(crate) messages: Vec<String>,
    /// Output paths of charts, by their `helm-chart.yaml`.
    outputs: HashMap<TreePath, String>,
    /// Kustomizations of items whose files are output.
    kustomizations: HashSet<TreePath>,
    /// True if any file requests an image.
    pub(crate) asks_for_images: bool,
}

/// Settings of an item in its kustomization.yaml.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Behaviour {
    pub(crate) barrier: bool,
    pub(crate) wait_readiness: bool,
}

struct Walk<'a> {
    renderer: Renderer,
    rules: Rules,
    /// The directory of the item, and the directory for its files.
    from: &'a TreePath,
    to: TreePath,
    charts: Vec<ChartFile>,
    /// Errors of templates; the other files are rendered nevertheless, to report all errors at once.
    failed: Vec<Error>,
}

/// Maximum number of template errors that are reported for one item.
const MAX_FAILED: usize = 100;

pub(crate) struct Staged {
    pub(crate) dir: TreePath,
    pub(crate) to: TreePath,
    pub(crate) charts: Vec<ChartFile>,
}

impl<'a> ItemWorkspace<'a> {
    pub(crate) fn new(tree: Arc<dyn Tree>, decrypt: Option<&'a dyn Decrypt>, budget: &'a Budget) -> Self {
        Self {
            tree,
            budget,
            decrypt,
            rendered: Mem::new(),
            moved: HashMap::new(),
            messages: Vec::new(),
            outputs: HashMap::new(),
            kustomizations: HashSet::new(),
            asks_for_images: false,
        }
    }

    pub(crate) fn budget(&self) -> &'a Budget {
        self.budget
    }

    /// Returns the rendered files, decrypted.
    pub(crate) fn clear(&self) -> Decrypting<'_> {
        Decrypting {
            tree: &self.rendered,
            sources: &*self.tree,
            moved: &self.moved,
            decrypt: self.decrypt,
            budget: self.budget,
        }
    }

    pub(crate) fn tree(&self) -> &Arc<dyn Tree> {
        &self.tree
    }

    /// Renders the files of an item.
    pub(crate) fn render(&mut self, item: &PlanItem, dir: TreePath) -> Result<Staged, Error> {
        let to = match item.index {
            0 => dir.clone(),
            again => match dir.parent() {
                Some(parent) => parent.child(&format!("{}-{again}", dir.name())),
                None => TreePath::root().child(&format!("-{again}")),
            },
        };
        let renderer = item.vars.renderer(&self.tree, &item.search);
        let rules = self.inherited_rules(&dir)?;
        let mut walk = Walk {
            renderer,
            rules,
            from: &dir,
            to,
            charts: Vec::new(),
            failed: Vec::new(),
        };
        let rendered = self.directory(&mut walk, &dir, false, 0);
        self.messages.extend(walk.renderer.take_messages());
        let Walk {
            to,
            charts,
            mut failed,
            ..
        } = walk;
        match rendered {
            Err(error) if error.exceeded().is_some() => return Err(error),
            Err(error) => failed.push(error),
            Ok(()) => {}
        }
        error::many(failed)?;
        Ok(Staged { dir, to, charts })
    }

    /// Returns the rules of `.templateignore` files above a directory.
    fn inherited_rules(&self, dir: &TreePath) -> Result<Rules, Error> {
        let mut rules = Rules::new();
        let mut above = TreePath::root();
        for part in dir.components() {
            self.add_rules(&mut rules, &above)?;
            above = above.child(part);
        }
        Ok(rules)
    }

    fn add_rules(&self, rules: &mut Rules, dir: &TreePath) -> Result<(), Error> {
        let file = dir.child(".templateignore");
        if self.tree.is_file(&file) {
            rules.add_file(dir, &String::from_utf8_lossy(&self.tree.read(&file)?));
        }
        Ok(())
    }

    fn directory(
        &mut self,
        walk: &mut Walk<'_>,
        dir: &TreePath,
        verbatim: bool,
        depth: u32,
    ) -> Result<(), Error> {
        if depth > files::MAX_DEPTH {
            return Err(files::too_deep(dir));
        }
        self.add_rules(&mut walk.rules, dir)?;
        let entries = self.tree.list(dir)?;
        // The templates of a Helm chart are not Jinja's.
        let verbatim = verbatim || entries.iter().any(|entry| entry.name == "Chart.yaml");
        for entry in entries {
            let path = dir.child(&entry.name);
            if !entry.is_dir {
                self.file(walk, &path, verbatim)?;
            } else if entry.name != ".git" {
                self.directory(walk, &path, verbatim, depth + 1)?;
            }
        }
        Ok(())
    }

    fn file(&mut self, walk: &mut Walk<'_>, path: &TreePath, verbatim: bool) -> Result<(), Error> {
        let verbatim = verbatim
            || walk
                .rules
                .is_ignored(path, false, self.budget)
                .map_err(|source| Error::Budget {
                    operation: format!("matching {path} with .templateignore"),
                    source,
                })?;
        let bytes = if verbatim {
            self.count(path, self.tree.read(path)?)?
        } else {
            match self.template(walk, path) {
                Err(error) if error.exceeded().is_none() && walk.failed.len() < MAX_FAILED => {
                    walk.failed.push(error);
                    return Ok(());
                }
                rendered => rendered?,
            }
        };
        self.asks_for_images |= contains(&bytes, IMAGE_BEGIN.as_bytes());
        let rest = path.strip(walk.from).unwrap_or_default();
        let target = walk.to.join(rest).map_err(|problem| Error::Invalid {
            file: path.clone(),
            line: 1,
            problem: problem.to_string(),
        })?;
        if !verbatim && is_chart(path.name()) {
            let dir = path.parent().unwrap_or_default();
            let rendered = target.clone();
            walk.charts.push(ChartFile { dir, rendered });
        }
        if target != *path {
            self.moved.insert(target.clone(), path.clone());
        }
        let executable = files::is_executable(&*self.tree, path)?;
        self.rendered.insert(target, bytes, executable);
        Ok(())
    }

    fn template(&self, walk: &mut Walk<'_>, path: &TreePath) -> Result<Bytes, Error> {
        let rendered = walk.renderer.render_file(path, self.budget);
        rendered.map_err(|source| match source {
            jinja::Error::Tree(error) => Error::Tree(error),
            source => Error::Template {
                what: format!("template '{path}'"),
                source,
            },
        })
    }

    /// Writes the objects of a chart into the directory of its item.
    pub(crate) fn write_chart(
        &mut self,
        file: &ChartFile,
        name: &str,
        path: TreePath,
        text: String,
    ) -> Result<(), Error> {
        let text = self.count(&path, Bytes::from(text))?;
        self.rendered.insert(path, text, false);
        self.outputs.insert(file.rendered.clone(), name.to_owned());
        Ok(())
    }

    /// Copied files count as output too.
    fn count(&self, path: &TreePath, bytes: Bytes) -> Result<Bytes, Error> {
        let operation = || format!("copying {path}");
        let counted = self.budget.output(bytes.len() as u64);
        counted.map(|()| bytes).map_err(|source| Error::Budget {
            operation: operation(),
            source,
        })
    }

    /// Writes the objects of an item among its files, and marks its kustomization as output.
    pub(crate) fn keep(&mut self, dir: &TreePath, objects: &[Value]) {
        if let Ok(Some(file)) = kustomize::find_kustomization(&self.rendered, dir) {
            self.kustomizations.insert(file);
        }
        let text = yaml::print::all(objects, yaml::print::goyaml);
        self.rendered.insert(dir.child(RENDERED), text, false);
    }

    /// Reads a rendered file for the output: kluctl writes the kustomizations of items anew, with sorted keys and without
    /// comments.
    pub(crate) fn read_for_output(&self, path: &TreePath) -> Result<Bytes, Error> {
        let text = self.rendered.read(path)?;
        if !self.kustomizations.contains(path) {
            return Ok(text);
        }
        match yaml::read::kustomize(&text, self.budget) {
            Ok(document) => Ok(yaml::print::goyaml(&document.value).into()),
            Err(source) => Err(Error::Yaml {
                file: path.clone(),
                source,
            }),
        }
    }

    /// Makes sure that a rendered directory has a kustomization with the project's namespace.
    pub(crate) fn kustomization(&mut self, item: &PlanItem, dir: &TreePath) -> Result<Behaviour, Error> {
        let kustomize = |source| Error::Kustomize {
            dir: dir.clone(),
            source,
        };
        let found = kustomize::find_kustomization(&self.rendered, dir).map_err(kustomize)?;
        if item.recursive {
            self.refuse_kustomizations(dir, found.is_some())?;
        }
        let Some(file) = found else {
            self.generate(item, dir)?;
            return Ok(Behaviour::default());
        };
        let text = self.rendered.read(&file)?;
        let value = match yaml::read::kustomize(&text, self.budget) {
            Ok(document) => document.value,
            Err(source) => return Err(Error::Yaml { file, source }),
        };
        let Value::Map(map) = value else {
            return Ok(Behaviour::default());
        };
        if let Some(namespace) = item.namespace.as_ref().filter(|_| !map.contains_key("namespace")) {
            let patched = with_namespace(&text, &map, namespace);
            self.rendered.insert(file, patched, false);
        }
        let object = Value::Map(map);
        let flag = |name: &str| {
            let value = object.pointer(&["metadata", "annotations", name]);
            value.is_some_and(|value| match value {
                Value::String(text) => objects::meta::go_bool(text).unwrap_or(false),
                value => value.as_bool() == Some(true),
            })
        };
        Ok(Behaviour {
            barrier: flag(annotations::BARRIER),
            wait_readiness: flag(annotations::WAIT_READINESS),
        })
    }

    /// Refuses kustomizations among listed manifests: every manifest below the directory is listed.
    fn refuse_kustomizations(&self, dir: &TreePath, own: bool) -> Result<(), Error> {
        let nested = |path: &TreePath| {
            let is_one = kustomize::FILE_NAMES.contains(&path.name());
            is_one.then(|| path.parent().unwrap_or_default())
        };
        let problem = if own {
            format!("recursive: true cannot be used when a kustomization.yaml/yml already exists in {dir}")
        } else {
            let files = files::walk(&self.rendered, dir, self.budget)?;
            let Some(found) = files.iter().find_map(nested) else {
                return Ok(());
            };
            format!(
                "recursive: true cannot be used when a nested kustomization.yaml/yml already exists in {found}"
            )
        };
        Err(Error::Invalid {
            file: dir.clone(),
            line: 1,
            problem,
        })
    }

    /// Returns the files that a generated kustomization may name, relative to the directory.
    fn candidates(&self, dir: &TreePath, recursive: bool) -> Result<Vec<String>, Error> {
        if recursive {
            let files = files::walk(&self.rendered, dir, self.budget)?;
            let below = files.iter().filter_map(|path| path.strip(dir));
            return Ok(below.map(str::to_owned).collect());
        }
        let entries = self.rendered.list(dir).unwrap_or_default();
        let files = entries.into_iter().filter(|entry| !entry.is_dir);
        Ok(files.map(|entry| entry.name).collect())
    }

    /// Writes a kustomization that names every manifest of the directory.
    fn generate(&mut self, item: &PlanItem, dir: &TreePath) -> Result<(), Error> {
        let (mut resources, mut known) = (Vec::new(), HashSet::new());
        for file in self.candidates(dir, item.recursive)? {
            let (parent, name) = match file.rsplit_once('/') {
                Some((parent, name)) => (format!("{parent}/"), name),
                None => (String::new(), file.as_str()),
            };
            let path = dir.join(&file).unwrap_or_default();
            let listed = match self.outputs.get(&path) {
                // Other outputs are listed by their own names.
                Some(output) if !is_manifest(output) || (output.contains('/') && !item.recursive) => {
                    format!("{parent}{output}")
                }
                None if is_manifest(name) => file,
                _ => continue,
            };
            if known.insert(listed.clone()) {
                resources.push(listed);
            }
        }
        let mut kustomization = Map::new();
        let resources: Vec<Value> = resources.into_iter().map(Value::from).collect();
        // In alphabetical order, as kluctl writes it.
        if let Some(namespace) = &item.namespace {
            kustomization.insert("namespace", namespace.as_str());
        }
        kustomization.insert("resources", resources);
        let text = yaml::print::kustomize(&Value::Map(kustomization));
        // kluctl's name for it.
        self.rendered.insert(dir.child("kustomization.yml"), text, false);
        Ok(())
    }
}

fn is_chart(name: &str) -> bool {
    matches!(name, "helm-chart.yaml" | "helm-chart.yml")
}

/// Returns true if a generated kustomization lists a file.
fn is_manifest(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let values = name.starts_with("helm-values.");
    !values && !is_chart(name) && (lower.ends_with(".yaml") || lower.ends_with(".yml"))
}

/// Adds a namespace at the end of a kustomization, so that all lines stay the same.
fn with_namespace(text: &[u8], map: &Map, namespace: &str) -> Bytes {
    let source = String::from_utf8_lossy(text);
    let mut field = Map::new();
    field.insert("namespace", namespace);
    let line = yaml::print::kustomize(&Value::Map(field));
    let begins_in_block = map
        .first()
        .and_then(|(key, _)| map.position(key))
        .is_some_and(|at| at.column == 1);
    let one_document = !source
        .lines()
        .any(|line| line.starts_with("---") || line.starts_with("..."));
    if begins_in_block && one_document {
        let newline = if source.ends_with('\n') { "" } else { "\n" };
        return Bytes::from(format!("{source}{newline}{line}"));
    }
    let mut map = map.clone();
    map.insert("namespace", namespace);
    Bytes::from(yaml::print::kustomize(&Value::Map(map)))
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
