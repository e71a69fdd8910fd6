//! Flattens deployment projects and their includes to a list of items.

mod include;
mod scope;

use std::{collections::HashMap, sync::Arc};

use objects::rules::Rules;
use tree::{NodeKind, TreePath};
use yaml::{Map, Value};

pub(crate) use scope::Scope;
use scope::union;

use crate::{
    Error, Inclusion, ObjectSelector,
    deployment::{self, Deployment, ItemConfig, ItemOutline, ItemSource, ProjectOutline},
    error,
    fields::Fields,
    files, repeated, source,
    vars::{self, Context, Loader, RenderInputs},
};

/// Cost of loading one project, in steps of the budget, so that includes can't multiply unbounded.
const STEPS_OF_A_PROJECT: u64 = 1_000;
/// Cost of an item, in steps of the budget.
const STEPS_OF_AN_ITEM: u64 = 100;
/// Maximum number of failed items that are reported for one project.
const MAX_FAILED: usize = 10;

#[derive(Debug)]
pub(crate) struct PlanItem {
    pub(crate) source: Arc<source::ProjectSource>,
    pub(crate) dir: Option<TreePath>,
    /// Number of earlier items with the same directory.
    pub(crate) index: u32,
    pub(crate) tags: Vec<String>,
    pub(crate) barrier: bool,
    pub(crate) wait_readiness: bool,
    pub(crate) message: Option<String>,
    pub(crate) vars: Context,
    /// Directories that are searched for its templates.
    pub(crate) search: Vec<TreePath>,
    pub(crate) labels: Arc<Map>,
    pub(crate) annotations: Arc<Map>,
    pub(crate) namespace: Option<String>,
    pub(crate) rules: Arc<Rules>,
    pub(crate) delete_objects: Vec<ObjectSelector>,
    pub(crate) wait_readiness_objects: Vec<ObjectSelector>,
    pub(crate) recursive: bool,
    pub(crate) only_render: bool,
    pub(crate) skip_delete_if_tags: bool,
}

pub(crate) struct Planner<'a> {
    pub(crate) inputs: RenderInputs<'a>,
    pub(crate) inclusion: &'a Inclusion,
    pub(crate) items: Vec<PlanItem>,
    pub(crate) messages: Vec<String>,
    /// The number of the last source.
    sources: usize,
    /// Total size of the variables of all items and results: each scope that adds variables holds a copy of all.
    vars_bytes: u64,
    /// Number of items by source and directory.
    seen: HashMap<(usize, TreePath), u32>,
}

impl<'a> Planner<'a> {
    pub(crate) fn new(inputs: RenderInputs<'a>, inclusion: &'a Inclusion) -> Self {
        Self {
            inputs,
            inclusion,
            items: Vec::new(),
            messages: Vec::new(),
            sources: 0,
            vars_bytes: 0,
            seen: HashMap::new(),
        }
    }

    /// Loads the project of `scope` and everything that it includes.
    pub(crate) fn project(
        &mut self,
        mut scope: Scope,
        from: Option<&TreePath>,
    ) -> Result<ProjectOutline, Error> {
        let in_dir = scope.dir.clone();
        let budget = |source| Error::Budget {
            operation: format!("loading the project in {in_dir}"),
            source,
        };
        self.inputs.budget.include_depth(scope.depth).map_err(budget)?;
        self.inputs.budget.step(STEPS_OF_A_PROJECT).map_err(budget)?;
        let (file, value) = self.read(&scope, from)?;
        let fields = Fields::new(&file, &value, "", 1)?;
        let deployment = Deployment::decode(&fields, self.inputs.budget)?;
        let mut var_reports = Vec::new();
        if fields.map.contains_key("vars") {
            (scope.vars, var_reports) = self.load_vars(&scope.vars, &scope, &scope.search, &fields)?;
        }
        let mut outline = ProjectOutline::new(fields.map, var_reports);
        if !deployment.when.is_empty() {
            if from.is_none() {
                return Err(fields.invalid("when", "the root deployment project can not contain 'when'"));
            }
            if !self.condition(&deployment.when, &scope, &fields, "when")? {
                return Ok(outline);
            }
        }
        scope.count_copies(&deployment, self.inputs.budget)?;
        scope.inherit(deployment);
        let mut failed = Vec::new();
        for (index, item) in fields.seq("deployments")?.iter().enumerate() {
            let path = format!("deployments[{index}]");
            let item = Fields::new(&file, item, &path, fields.line_of("deployments"))?;
            self.inputs.budget.step(STEPS_OF_AN_ITEM).map_err(budget)?;
            match self.item(&scope, &item, &path) {
                Ok(item) => outline.items.push(item),
                Err(error) if error.exceeded().is_some() => return Err(error),
                Err(error) => failed.push(error),
            }
            if failed.len() >= MAX_FAILED {
                break;
            }
        }
        error::many(failed).map(|()| outline)
    }

    /// Renders and parses `deployment.yaml`.
    fn read(&mut self, scope: &Scope, from: Option<&TreePath>) -> Result<(TreePath, Value), Error> {
        let (dir, tree) = (&scope.dir, &scope.source.tree);
        // Fails for a directory in a submodule of a fetched repository.
        tree.kind(dir)?;
        let Some(file) = files::find(&**tree, dir, "deployment") else {
            if from.is_none() {
                return Ok((deployment::implicit_file(dir), deployment::implicit()));
            }
            return Err(Error::NoDeployment(
                match files::find(&**tree, dir, "kustomization") {
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
        let mut renderer = scope.vars.renderer(tree, &scope.search);
        let text = renderer
            .render_file(&file, self.inputs.budget)
            .map_err(|source| {
                wrap(Error::Template {
                    what: format!("template '{file}'"),
                    source,
                })
            })?;
        self.messages.extend(renderer.take_messages());
        let value = files::parse_map(&file, &text, self.inputs.budget).map_err(wrap)?;
        Ok((file, value))
    }

    fn item(&mut self, scope: &Scope, fields: &Fields<'_>, path: &str) -> Result<ItemOutline, Error> {
        let item = ItemConfig::decode(fields)?;
        let mut outline = ItemOutline::new(fields.map, &item.tags);
        if !self.condition(&item.when, scope, fields, &format!("{path}.when"))? {
            return Ok(outline);
        }
        match &item.source {
            ItemSource::Path(_) => {
                let dir = self.directory(scope, fields, &item.source)?;
                let mut search = vec![dir.clone()];
                search.extend(scope.search.iter().filter(|other| **other != dir).cloned());
                let (vars, var_reports) = self.load_vars(&scope.vars, scope, &search, fields)?;
                outline.loaded(var_reports);
                outline.item = self.push(scope, item, Some(dir), vars, search)?;
            }
            ItemSource::Include(_) | ItemSource::Remote(_) => {
                self.include(scope, fields, &item, &mut outline)?;
                if item.barrier {
                    self.push(scope, item, None, scope.vars.clone(), Vec::new())?;
                }
            }
            ItemSource::Nothing => {
                // Variables of an item without content have no use, but broken ones are errors.
                let (vars, var_reports) = self.load_vars(&scope.vars, scope, &scope.search, fields)?;
                outline.loaded(var_reports);
                outline.item = self.push(scope, item, None, vars, Vec::new())?;
            }
        }
        Ok(outline)
    }

    /// Adds an item and returns its index, unless it is excluded.
    fn push(
        &mut self,
        scope: &Scope,
        item: ItemConfig,
        dir: Option<TreePath>,
        vars: Context,
        search: Vec<TreePath>,
    ) -> Result<Option<usize>, Error> {
        let index = dir.clone().map_or(0, |dir| {
            let times = self.seen.entry((scope.source.id, dir)).or_default();
            *times += 1;
            *times - 1
        });
        let compared = scope.tags.len() + item.tags.len() + self.inclusion.len();
        let budget = |source| Error::Budget {
            operation: format!("the tags of an item in {}", scope.dir),
            source,
        };
        self.inputs.budget.step(compared as u64).map_err(budget)?;
        let tags = union(&scope.tags, &item.tags);
        let always = item.only_render || item.always_deploy || item.barrier;
        if !always && !self.inclusion.includes(&tags, dir.as_ref()) {
            return Ok(None);
        }
        let searched = search.iter().map(|dir| dir.as_str().len());
        let lens = tags.iter().map(String::len).chain(searched);
        repeated::count(self.inputs.budget, lens, || {
            format!("the tags of an item in {}", scope.dir)
        })?;
        self.items.push(PlanItem {
            source: scope.source.clone(),
            dir,
            index,
            tags,
            barrier: item.barrier,
            wait_readiness: item.wait_readiness,
            message: item.message,
            vars,
            search,
            labels: scope.labels.clone(),
            annotations: scope.annotations.clone(),
            namespace: scope.namespace.clone(),
            rules: scope.rules.clone(),
            delete_objects: item.delete_objects,
            wait_readiness_objects: item.wait_readiness_objects,
            recursive: item.recursive,
            only_render: item.only_render,
            skip_delete_if_tags: item.skip_delete_if_tags,
        });
        Ok(Some(self.items.len() - 1))
    }

    /// Returns the directory that an item names, which must exist in the tree.
    fn directory(&self, scope: &Scope, fields: &Fields<'_>, source: &ItemSource) -> Result<TreePath, Error> {
        let (field, name) = match source {
            ItemSource::Path(name) => ("path", name),
            ItemSource::Include(name) => ("include", name),
            ItemSource::Remote(_) | ItemSource::Nothing => return Ok(scope.dir.clone()),
        };
        let missing = |because: &'static str| {
            let (file, line, dir) = (fields.file.clone(), fields.line_of(field), name.clone());
            match source {
                ItemSource::Include(_) => Error::MissingInclude {
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
        match scope.source.tree.kind(&path)? {
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
        let mut renderer = scope.vars.renderer(&scope.source.tree, &[]);
        renderer
            .condition(when, self.inputs.budget)
            .map_err(|source| Error::Template {
                what: format!("{path} of {}: {}", fields.file, vars::conditional(when)),
                source,
            })
    }

    /// Loads the variables of a project or an item in addition to `vars`, and returns their sources for results.
    fn load_vars(
        &mut self,
        context: &Context,
        scope: &Scope,
        search: &[TreePath],
        fields: &Fields<'_>,
    ) -> Result<(Context, Vec<Value>), Error> {
        if !fields.map.contains_key("vars") {
            return Ok((context.clone(), Vec::new()));
        }
        let messages = &mut self.messages;
        let loader = Loader {
            inputs: self.inputs,
            tree: &scope.source.tree,
            search,
            messages,
            bytes: &mut self.vars_bytes,
        };
        loader.load(context, fields)
    }
}
