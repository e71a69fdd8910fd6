//! From a tree and a request to objects.

use std::sync::Arc;

use kustomize::LoadRestriction;
use tree::{Budget, Tree};
use yaml::Map;

use crate::{
    Error, Item, Rendered, Request,
    chart::Renderer,
    error::many,
    item::{Behaviour, Stage, Staged},
    plan::{PlanItem, Planner, Scope},
    postprocess,
    project::Project,
    target,
    vars::Context,
};

/// How many failures are told at once.
const MAX_ERRORS: usize = 10;

/// Renders a project for a target.
///
/// # Errors
/// When the project is broken, asks for something that is not supported, or the budget ends. Failures of several items
/// are told together.
pub fn render(tree: Arc<dyn Tree>, request: &Request, budget: &Budget) -> Result<Rendered, Error> {
    tree::on_deep_stack(move || render_here(tree, request, budget))?
}

fn render_here(tree: Arc<dyn Tree>, request: &Request, budget: &Budget) -> Result<Rendered, Error> {
    let project = Project::load(&*tree, &request.project_dir, budget)?;
    let chosen = target::choose(project, request, budget)?;
    let mut vars = Map::new();
    vars.insert("args", chosen.target.args.clone());
    vars.insert("target", target::variable(&chosen.target));
    let (items, messages) = (Vec::new(), Vec::new());
    let mut planner = Planner {
        tree: tree.clone(),
        budget,
        items,
        messages,
    };
    planner.project(Scope::root(request.project_dir.clone(), Context::new(vars)), None)?;
    let Planner {
        items: plan,
        mut messages,
        ..
    } = planner;
    let mut stage = Stage::new(tree, budget);
    let charts = Renderer::new(&request.charts);
    let items = render_items(&mut stage, &charts, plan, chosen.target.discriminator.as_deref());
    messages.append(&mut stage.messages);
    let mut warnings = chosen.warnings;
    warnings.append(&mut messages);
    Ok(Rendered {
        target: chosen.target,
        items: items?,
        warnings,
    })
}

/// Renders the directories of all items, then their charts, then builds them: they may name each other.
fn render_items(
    stage: &mut Stage<'_>,
    charts: &Renderer<'_>,
    plan: Vec<PlanItem>,
    discriminator: Option<&str>,
) -> Result<Vec<Item>, Error> {
    let staged = collect(plan, |item| {
        let staged = item.dir.clone().map(|dir| stage.render(&item, dir)).transpose()?;
        Ok((item, staged))
    })?;
    let charted = collect(staged, |(item, staged)| {
        if let Some(staged) = &staged {
            collect(staged.charts.iter().collect(), |file| {
                charts.render(stage, &staged.dir, file)
            })?;
        }
        Ok((item, staged))
    })?;
    let prepared = collect(charted, |(item, staged)| {
        let behaviour = match &staged {
            Some(staged) => stage.kustomization(&item, &staged.to)?,
            None => Behaviour::default(),
        };
        Ok((item, staged, behaviour))
    })?;
    collect(prepared, |(item, staged, behaviour)| {
        build(stage, item, staged.as_ref(), behaviour, discriminator)
    })
}

fn build(
    stage: &mut Stage<'_>,
    item: PlanItem,
    staged: Option<&Staged>,
    behaviour: Behaviour,
    discriminator: Option<&str>,
) -> Result<Item, Error> {
    let mut objects = Vec::new();
    if let Some(Staged { dir, to, .. }) = staged {
        let options = kustomize::Options {
            // Items may name what lies beside them; the tree holds nothing but the project.
            load_restriction: LoadRestriction::None,
            ..kustomize::Options::default()
        };
        let built = kustomize::build(&stage.rendered, to, &options, stage.budget());
        let built = built.map_err(|source| Error::Kustomize {
            dir: dir.clone(),
            source,
        })?;
        let told = built.warnings.iter();
        stage
            .messages
            .extend(told.map(|warning| format!("{}: {}", warning.file, warning.text)));
        objects = postprocess::finish(&item, dir, discriminator, built.objects)?;
    }
    Ok(Item {
        dir: item.dir,
        tags: item.tags,
        barrier: item.barrier || behaviour.barrier,
        wait_readiness: item.wait_readiness || behaviour.wait_readiness,
        message: item.message,
        objects,
        ..Item::default()
    })
}

/// Does all of a step, and goes on only when nothing failed. A breach of the budget ends the step at once.
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
