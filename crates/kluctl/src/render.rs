//! From a tree and a request to objects.

use std::sync::Arc;

use kustomize::LoadRestriction;
use tree::{Budget, Tree, TreePath};
use yaml::Map;

use crate::{
    Error, Item, Rendered, Request,
    error::many,
    item::{Behaviour, Stage},
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
    let items = render_items(&mut stage, plan, chosen.target.discriminator.as_deref());
    messages.append(&mut stage.messages);
    let mut warnings = chosen.warnings;
    warnings.append(&mut messages);
    Ok(Rendered {
        target: chosen.target,
        items: items?,
        warnings,
    })
}

/// Renders the directories of all items, then builds them: they may name each other.
fn render_items(
    stage: &mut Stage<'_>,
    plan: Vec<PlanItem>,
    discriminator: Option<&str>,
) -> Result<Vec<Item>, Error> {
    let staged = collect(plan, |item| {
        let dir = item
            .dir
            .clone()
            .map(|dir| stage.render(&item, &dir).map(|to| (dir, to)))
            .transpose()?;
        Ok((item, dir))
    })?;
    let prepared = collect(staged, |(item, dirs)| {
        let behaviour = match &dirs {
            Some((_, to)) => stage.kustomization(&item, to)?,
            None => Behaviour::default(),
        };
        Ok((item, dirs, behaviour))
    })?;
    collect(prepared, |(item, dirs, behaviour)| {
        build(stage, item, dirs.as_ref(), behaviour, discriminator)
    })
}

fn build(
    stage: &mut Stage<'_>,
    item: PlanItem,
    dirs: Option<&(TreePath, TreePath)>,
    behaviour: Behaviour,
    discriminator: Option<&str>,
) -> Result<Item, Error> {
    let mut objects = Vec::new();
    if let Some((dir, to)) = dirs {
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
