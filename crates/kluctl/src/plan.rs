//! From deployment projects, with all that they include, to a flat list of items.

use std::sync::Arc;

use tree::{Budget, NodeKind, Tree, TreePath};
use yaml::{Map, Value};

use crate::{
    Error,
    deployment::{self, Deployment, ItemConfig, Source},
    fields::Fields,
    files,
    vars::{Context, Loader},
};

/// What loading one project costs of the budget of steps, so that includes can't multiply for long.
const STEPS_OF_A_PROJECT: u64 = 1_000;

/// An item, before it is rendered.
#[derive(Debug)]
pub(crate) struct PlanItem {
    pub(crate) dir: Option<TreePath>,
    pub(crate) tags: Vec<String>,
    pub(crate) barrier: bool,
    pub(crate) wait_readiness: bool,
    pub(crate) message: Option<String>,
    /// What its templates see.
    pub(crate) vars: Context,
    /// Where its templates are found.
    pub(crate) search: Vec<TreePath>,
    pub(crate) labels: Arc<Map>,
    pub(crate) namespace: Option<String>,
}

/// What a project hands down to its items and includes.
#[derive(Debug, Clone)]
pub(crate) struct Scope {
    pub(crate) dir: TreePath,
    /// The directory of the project, then those of the projects that include it.
    pub(crate) search: Vec<TreePath>,
    pub(crate) vars: Context,
    /// The tags of the including item; with those of the projects once the project's own file is read.
    pub(crate) tags: Vec<String>,
    /// The tags of the projects around.
    outer_tags: Vec<String>,
    pub(crate) labels: Arc<Map>,
    pub(crate) namespace: Option<String>,
    depth: u32,
}

/// Walks projects and collects their items.
pub(crate) struct Planner<'a> {
    pub(crate) tree: Arc<dyn Tree>,
    pub(crate) budget: &'a Budget,
    pub(crate) items: Vec<PlanItem>,
    pub(crate) messages: Vec<String>,
}

impl Scope {
    pub(crate) fn root(dir: TreePath, vars: Context) -> Self {
        let search = vec![dir.clone()];
        let (tags, outer_tags) = (Vec::new(), Vec::new());
        Self {
            dir,
            search,
            vars,
            tags,
            outer_tags,
            labels: Arc::default(),
            namespace: None,
            depth: 0,
        }
    }

    /// The scope of an included project, before its own file is read.
    fn included(&self, dir: TreePath, tags: &[String], vars: Context) -> Self {
        let mut search = vec![dir.clone()];
        search.extend(self.search.iter().filter(|other| **other != dir).cloned());
        let (tags, outer_tags) = (tags.to_vec(), self.tags.clone());
        Self {
            dir,
            search,
            vars,
            tags,
            outer_tags,
            depth: self.depth + 1,
            ..self.clone()
        }
    }
}

impl Planner<'_> {
    /// Loads the project of `scope` and everything that it includes.
    pub(crate) fn project(&mut self, mut scope: Scope, from: Option<&TreePath>) -> Result<(), Error> {
        let budget = |source| Error::Budget {
            place: format!("loading the project in {}", scope.dir),
            source,
        };
        self.budget.include_depth(scope.depth).map_err(budget)?;
        self.budget.step(STEPS_OF_A_PROJECT).map_err(budget)?;
        let (file, value) = self.read(&scope, from)?;
        let fields = Fields::new(&file, &value, "", 1)?;
        let deployment = Deployment::decode(&fields)?;
        scope.vars = self.load_vars(&scope.vars, &scope.search, &fields)?;
        if !deployment.when.is_empty() {
            if from.is_none() {
                return Err(fields.invalid("when", "the root deployment project can not contain 'when'"));
            }
            if !self.condition(&deployment.when, &scope, &fields, "when")? {
                return Ok(());
            }
        }
        inherit(&mut scope, deployment);
        for (index, item) in fields.seq("deployments")?.iter().enumerate() {
            let path = format!("deployments[{index}]");
            let item = Fields::new(&file, item, &path, fields.line_of("deployments"))?;
            self.item(&scope, &item, &path)?;
        }
        Ok(())
    }

    /// The rendered and parsed `deployment.yaml`.
    fn read(&mut self, scope: &Scope, from: Option<&TreePath>) -> Result<(TreePath, Value), Error> {
        let dir = &scope.dir;
        let Some(file) = files::find(&*self.tree, dir, "deployment") else {
            if from.is_none() {
                return Ok((deployment::implicit_file(dir), deployment::implicit()));
            }
            return Err(Error::NoDeployment(
                match files::find(&*self.tree, dir, "kustomization") {
                    Some(_) => {
                        format!("deployment.yml not found but folder {dir} contains a kustomization.yml")
                    }
                    None => format!("deployment.yml not found in {dir}: an included directory needs one"),
                },
            ));
        };
        let wrap = |source| Error::Load {
            dir: dir.clone(),
            source: Box::new(source),
        };
        let mut renderer = scope.vars.renderer(&self.tree, &scope.search);
        let text = renderer.render_file(&file, self.budget).map_err(|source| {
            wrap(Error::Template {
                what: format!("template '{file}'"),
                source,
            })
        })?;
        self.messages.extend(renderer.take_messages());
        let value = files::parse(&file, &text, self.budget).map_err(wrap)?;
        Ok((
            file,
            if value.is_null() {
                Value::Map(Map::new())
            } else {
                value
            },
        ))
    }

    fn item(&mut self, scope: &Scope, fields: &Fields<'_>, path: &str) -> Result<(), Error> {
        let item = ItemConfig::decode(fields)?;
        // A missing directory is told even when the item is switched off, a missing project isn't.
        let dir = match &item.source {
            Source::Path(_) => self.directory(scope, fields, &item.source)?,
            _ => scope.dir.clone(),
        };
        if !self.condition(&item.when, scope, fields, &format!("{path}.when"))? {
            return Ok(());
        }
        match &item.source {
            Source::Path(_) => {
                let mut search = vec![dir.clone()];
                search.extend(scope.search.iter().filter(|other| **other != dir).cloned());
                let vars = self.load_vars(&scope.vars, &search, fields)?;
                self.push(scope, item, Some(dir), vars, search);
            }
            Source::Include(_) => {
                let dir = self.directory(scope, fields, &item.source)?;
                if let Some(library) = files::find(&*self.tree, &dir, ".kluctl-library") {
                    let field = "a library project".to_owned();
                    return Err(Error::Unsupported {
                        file: library,
                        line: 1,
                        field,
                    });
                }
                let vars = self.load_vars(&scope.vars, &scope.search, fields)?;
                self.project(scope.included(dir, &item.tags, vars), Some(fields.file))?;
                if item.barrier {
                    self.push(scope, item, None, scope.vars.clone(), Vec::new());
                }
            }
            Source::Nothing => {
                // Variables of an item without content go nowhere, but broken ones are told.
                let vars = self.load_vars(&scope.vars, &scope.search, fields)?;
                self.push(scope, item, None, vars, Vec::new());
            }
        }
        Ok(())
    }

    fn push(
        &mut self,
        scope: &Scope,
        item: ItemConfig,
        dir: Option<TreePath>,
        vars: Context,
        search: Vec<TreePath>,
    ) {
        self.items.push(PlanItem {
            dir,
            tags: union(&scope.tags, &item.tags),
            barrier: item.barrier,
            wait_readiness: item.wait_readiness,
            message: item.message,
            vars,
            search,
            labels: scope.labels.clone(),
            namespace: scope.namespace.clone(),
        });
    }

    /// The directory that an item names; it must exist and lie in the tree.
    fn directory(&self, scope: &Scope, fields: &Fields<'_>, source: &Source) -> Result<TreePath, Error> {
        let (field, name) = match source {
            Source::Path(name) => ("path", name),
            Source::Include(name) => ("include", name),
            Source::Nothing => return Ok(scope.dir.clone()),
        };
        let missing = |because: &'static str| {
            let (file, line, dir) = (fields.file.clone(), fields.line_of(field), name.clone());
            match source {
                Source::Include(_) => Error::MissingInclude {
                    file,
                    line,
                    dir,
                    because,
                },
                _ => Error::MissingDirectory {
                    file,
                    line,
                    dir,
                    because,
                },
            }
        };
        let path = scope
            .dir
            .join(name)
            .map_err(|_| missing(", it leads outside of the source"))?;
        match self.tree.kind(&path)? {
            Some(NodeKind::Dir) => Ok(path),
            Some(NodeKind::File { .. }) if field == "path" => {
                Err(fields.invalid(field, format!("deployment path is not a directory: {name}")))
            }
            _ => Err(missing("")),
        }
    }

    fn condition(
        &mut self,
        when: &str,
        scope: &Scope,
        fields: &Fields<'_>,
        path: &str,
    ) -> Result<bool, Error> {
        if when.is_empty() {
            return Ok(true);
        }
        let mut renderer = scope.vars.renderer(&self.tree, &[]);
        renderer
            .condition(when, self.budget)
            .map_err(|source| Error::Template {
                what: format!("{path} of {}", fields.file),
                source,
            })
    }

    fn load_vars(
        &mut self,
        context: &Context,
        search: &[TreePath],
        fields: &Fields<'_>,
    ) -> Result<Context, Error> {
        if !fields.map.contains_key("vars") {
            return Ok(context.clone());
        }
        let messages = &mut self.messages;
        Loader {
            tree: &self.tree,
            search,
            budget: self.budget,
            messages,
        }
        .load(context, fields)
    }
}

/// Adds what the project itself says to what it inherits. The tags of an include come before those of the project, and
/// both before those of the projects around.
fn inherit(scope: &mut Scope, deployment: Deployment) {
    scope.tags = union(&union(&scope.tags, &deployment.tags), &scope.outer_tags);
    if !deployment.labels.is_empty() {
        let labels = Arc::make_mut(&mut scope.labels);
        for (key, value) in deployment.labels {
            labels.insert(key, value);
        }
    }
    if deployment.namespace.is_some() {
        scope.namespace = deployment.namespace;
    }
}

/// Both lists without duplicates, in order.
fn union(first: &[String], second: &[String]) -> Vec<String> {
    let mut union: Vec<String> = Vec::with_capacity(first.len() + second.len());
    for tag in first.iter().chain(second) {
        if !union.contains(tag) {
            union.push(tag.clone());
        }
    }
    union
}
