//! Renders the objects of a project.

use std::{collections::BTreeMap, sync::Arc};

use kustomize::LoadRestriction;
use tree::{Budget, Mem, Tree, TreePath};
use yaml::Map;

use crate::{
    Decrypt, Error, FixedImage, Item, Outline, Rendered, Request, RequestedImage,
    chart::{Renderer, rendered_chart},
    error::{MAX_ERRORS, many},
    files, images,
    item::{Behaviour, ItemWorkspace, Staged},
    legacy,
    plan::{PlanItem, Planner, Scope},
    postprocess,
    project::Project,
    source::ProjectSource,
    target,
    vars::{Context, RenderInputs},
};

/// Renders a project for a target. Fails if the project is invalid or unsupported, or a limit of the budget is exceeded.
/// Failures of several items are reported together.
pub fn render(tree: Arc<dyn Tree>, request: &Request, budget: &Budget) -> Result<Rendered, Error> {
    tree::on_deep_stack(move || render_here(tree, request, budget))?
}

fn render_here(tree: Arc<dyn Tree>, request: &Request, budget: &Budget) -> Result<Rendered, Error> {
    let project = Project::load(&*tree, request, budget)?;
    let external = project.external.clone();
    let chosen = target::choose(project, &tree, request, budget)?;
    let mut vars = Map::new();
    vars.insert("args", chosen.args);
    vars.insert("target", chosen.target.to_map());
    if let Some(cluster) = chosen.cluster {
        vars.insert("cluster", cluster);
    }
    let inputs = RenderInputs {
        budget,
        decrypt: request.decrypt.as_deref(),
        sources: request.sources.as_deref(),
        vars: request.vars.as_deref(),
        aws: &chosen.target.aws,
    };
    let (source, dir) = legacy::deployment(tree, request, external.as_ref(), budget)?;
    let mut planner = Planner::new(inputs, &request.inclusion);
    let mut context = Context::new(vars, request.environment());
    if source.name.is_some() {
        context = context.without_history();
    }
    let scope = Scope::root(source.clone(), dir, context);
    let project = source.say(planner.project(scope, None))?;
    let mut warnings = chosen.warnings;
    warnings.append(&mut planner.messages);
    let mut fixed = chosen.images;
    fixed.extend(request.images.iter().cloned());
    let mut run = Run {
        stages: BTreeMap::new(),
        charts: Renderer::new(&request.charts, request.sources.as_deref()),
        discriminator: chosen.target.discriminator.as_deref(),
        decrypt: request.decrypt.as_deref(),
        keep: request.keep_files,
        fixed,
        seen: Vec::new(),
        budget,
    };
    let items = run.items(planner.items);
    for stage in run.stages.values_mut() {
        warnings.append(&mut stage.messages);
    }
    let (items, images) = (items?, run.seen);
    let stages = run.stages;
    let files = match request.keep_files {
        true => Some(Arc::new(all_files(&stages, budget)?)),
        false => None,
    };
    Ok(Rendered {
        outline: Outline { project },
        target: chosen.target,
        items,
        images,
        files,
        warnings,
    })
}

struct Run<'a> {
    /// The rendered files, by the number of their source.
    stages: BTreeMap<usize, ItemWorkspace<'a>>,
    charts: Renderer<'a>,
    discriminator: Option<&'a str>,
    decrypt: Option<&'a dyn Decrypt>,
    keep: bool,
    fixed: Vec<FixedImage>,
    seen: Vec<RequestedImage>,
    budget: &'a Budget,
}

impl<'a> Run<'a> {
    fn stage(&mut self, source: &ProjectSource) -> &mut ItemWorkspace<'a> {
        let (decrypt, budget) = (self.decrypt, self.budget);
        self.stages
            .entry(source.id)
            .or_insert_with(|| ItemWorkspace::new(source.tree.clone(), decrypt, budget))
    }

    /// Renders the directories of all items, then their charts, then builds them: they may name each other.
    fn items(&mut self, plan: Vec<PlanItem>) -> Result<Vec<Item>, Error> {
        let staged = collect(plan, |item| {
            let stage = self.stage(&item.source);
            let staged = item.dir.clone().map(|dir| stage.render(&item, dir)).transpose();
            let staged = item.source.say(staged)?;
            Ok((item, staged))
        })?;
        let charted = collect(staged, |(item, staged)| {
            if let Some(staged) = &staged {
                let rendered = collect(staged.charts.iter().collect(), |file| {
                    self.stage(&item.source);
                    match self.stages.get_mut(&item.source.id) {
                        Some(stage) => self.charts.render(stage, &staged.dir, file),
                        None => Ok(()),
                    }
                });
                item.source.say(rendered)?;
            }
            Ok((item, staged))
        })?;
        let prepared = collect(charted, |(item, staged)| {
            let behaviour = match &staged {
                Some(staged) if !item.only_render => {
                    let behaviour = self.stage(&item.source).kustomization(&item, &staged.to);
                    item.source.say(behaviour)?
                }
                _ => Behaviour::default(),
            };
            Ok((item, staged, behaviour))
        })?;
        let asks = self.stages.values().any(|stage| stage.asks_for_images);
        let mut number = 0;
        collect(prepared, |(item, staged, behaviour)| {
            let source = item.source.clone();
            let built = self.build(item, staged.as_ref(), behaviour, asks.then_some(number));
            number += 1;
            source.say(built)
        })
    }

    /// Builds an item, with its number if it may request images.
    fn build(
        &mut self,
        item: PlanItem,
        staged: Option<&Staged>,
        behaviour: Behaviour,
        number: Option<usize>,
    ) -> Result<Item, Error> {
        let (mut objects, mut chart) = (Vec::new(), None);
        let discriminator = self.discriminator;
        if let Some(Staged { dir, to, .. }) = staged {
            let stage = self.stage(&item.source);
            chart = rendered_chart(stage, to)?;
            if !item.only_render {
                let built = kustomize(stage, dir, to)?;
                objects = postprocess::finish(&item, dir, discriminator, built, self.budget)?;
            }
        }
        if let (Some(number), Some(Staged { dir, .. })) = (number, staged) {
            let context = images::ImageContext {
                item: number,
                tags: &item.tags,
                dir: &dir.to_string(),
                fixed: &self.fixed,
                variables: item.vars.map().get("images"),
                budget: self.budget,
            };
            self.seen.extend(images::resolve(&mut objects, &context)?);
        }
        if let (true, Some(Staged { to, .. })) = (self.keep && !item.only_render, staged) {
            self.stage(&item.source).keep(to, &objects);
        }
        Ok(Item {
            dir: item.dir,
            tags: item.tags,
            barrier: item.barrier || behaviour.barrier,
            wait_readiness: item.wait_readiness || behaviour.wait_readiness,
            message: item.message,
            delete_objects: item.delete_objects,
            wait_readiness_objects: item.wait_readiness_objects,
            rules: item.rules,
            chart,
            objects,
        })
    }
}

/// Builds the objects of a rendered directory.
fn kustomize(
    stage: &mut ItemWorkspace<'_>,
    dir: &TreePath,
    to: &TreePath,
) -> Result<Vec<kustomize::Built>, Error> {
    let options = kustomize::Options {
        // Items may name files next to them; the tree holds nothing but the project.
        load_restriction: LoadRestriction::None,
        ..kustomize::Options::default()
    };
    let built = kustomize::build(&stage.clear(), to, &options, stage.budget());
    let built = built.map_err(|source| Error::Kustomize {
        dir: dir.clone(),
        source,
    })?;
    let warnings = built.warnings.iter();
    stage
        .messages
        .extend(warnings.map(|warning| format!("{}: {}", warning.file, warning.text)));
    Ok(built.objects)
}

/// Returns the rendered files of all sources, each source in a directory with its number.
fn all_files(stages: &BTreeMap<usize, ItemWorkspace<'_>>, budget: &Budget) -> Result<Mem, Error> {
    let mut all = Mem::new();
    for (id, stage) in stages {
        let dir = TreePath::root().child(&id.to_string());
        for path in files::walk(&stage.rendered, &TreePath::root(), budget)? {
            let bytes = stage.read_for_output(&path)?;
            let executable = files::is_executable(&stage.rendered, &path)?;
            all.insert(dir.join(path.as_str()).unwrap_or_default(), bytes, executable);
        }
    }
    Ok(all)
}

/// Does a step for all items, and continues only if none failed. An exceeded budget ends the step at once.
fn collect<T, R>(items: Vec<T>, mut step: impl FnMut(T) -> Result<R, Error>) -> Result<Vec<R>, Error> {
    let mut done = Vec::with_capacity(items.len());
    let mut errors = Vec::new();
    for item in items {
        match step(item) {
            Ok(result) => done.push(result),
            Err(error) => {
                let stop = error.exceeded().is_some() || errors.len() + 1 >= MAX_ERRORS;
                errors.push(error);
                if stop {
                    break;
                }
            }
        }
    }
    many(errors).map(|()| done)
}
