//! Accumulates one directory: its resources, generators, components, and its transformers in their order.

mod pipeline;

use std::sync::Arc;

use crate::{
    Error,
    config::{Config, crds},
    error::{Context as _, Step},
    loader::{self, Loader},
    metadata,
    model::{self, Kustomization, KustomizationKind},
    plugin, read, remote,
    resmap::ResMap,
    resource::Resource,
    target::Target,
    transform::PluginContext,
    vars::VarSet,
};

/// The objects, tables and vars of a directory and those below it.
#[derive(Debug, Default)]
pub(crate) struct Accumulator {
    pub(crate) resources: ResMap,
    pub(crate) config: Config,
    pub(crate) vars: VarSet,
}

impl Accumulator {
    fn merge(&mut self, other: Self, ctx: &PluginContext<'_>) -> Result<(), Error> {
        self.resources.append_all(other.resources)?;
        self.config.merge(&other.config, ctx)?;
        self.vars.absorb(other.vars)
    }
}

impl Target<'_> {
    /// Accumulates the directory. `acc` is empty except for components, which change the objects of their parent.
    pub(crate) fn accumulate(&self, mut acc: Accumulator) -> Result<Accumulator, Error> {
        let fields = &self.kustomization.fields;
        let ctx = self.plugin_context();
        let read = self
            .accumulate_resources(&mut acc, &fields.resources)
            .context(|| "accumulating resources");
        self.at("resources", read)?;
        let config = Config::load(&fields.configurations, &ctx);
        acc.config.merge(&self.at("configurations", config)?, &ctx)?;
        let crds = crds::load(&fields.crds, &ctx).context(|| format!("loading CRDs {:?}", fields.crds));
        acc.config.merge(&self.at("crds", crds)?, &ctx)?;
        self.generate(&mut acc)?;
        for path in &fields.components {
            let component = self.accumulate_component(&mut acc, path);
            self.at("components", component.context(|| "accumulating components"))?;
        }
        self.transform(&mut acc)?;
        self.validate(&mut acc)?;
        acc.vars.declare(&self.kustomization, &mut acc.resources)?;
        Ok(acc)
    }

    /// Adds the entries of `resources`, first tried as files, then as directories.
    pub(crate) fn accumulate_resources(&self, acc: &mut Accumulator, paths: &[String]) -> Result<(), Error> {
        for path in paths {
            self.run().step(1, self.loader.root())?;
            let Err(as_file) = self.accumulate_file(acc, path) else {
                self.run().fits(acc.resources.len(), self.loader.root())?;
                continue;
            };
            if as_file.exceeded().is_some() {
                return Err(as_file);
            }
            let loader = match self.loader.enter(path) {
                Ok(loader) => loader,
                // The error of the file is complete.
                Err(_) if is_file(path, &as_file) => return Err(as_file),
                Err(error) => return Err(error.context(format!("accumulation err='{as_file}'"))),
            };
            let base = self
                .accumulate_directory(
                    &loader,
                    path,
                    Accumulator::default(),
                    KustomizationKind::Kustomization,
                )
                .and_then(|base| {
                    let root = loader.root();
                    acc.merge(base, &self.plugin_context())
                        .context(|| format!("recursed merging from path '{root}'"))
                });
            base.context(|| format!("accumulation err='{as_file}'"))?;
            self.run().fits(acc.resources.len(), self.loader.root())?;
        }
        Ok(())
    }

    fn accumulate_file(&self, acc: &mut Accumulator, path: &str) -> Result<(), Error> {
        let resources = self
            .read(path)
            .context(|| format!("accumulating resources from '{path}'"))?;
        acc.resources
            .append_all(resources)
            .context(|| format!("merging resources from '{path}'"))
    }

    fn read(&self, path: &str) -> Result<ResMap, Error> {
        let (bytes, file) = self.loader.load(path)?;
        let mut resources = unique(read::resources(&bytes, &Arc::new(file), self.run())?)?;
        if let Some(origin) = &self.origin {
            let origin = Arc::new(origin.append(path));
            for resource in resources.iter_mut() {
                resource.history.origin = Some(origin.clone());
            }
        }
        Ok(resources)
    }

    fn accumulate_component(&self, acc: &mut Accumulator, path: &str) -> Result<(), Error> {
        let loader = self
            .loader
            .enter(path)
            .map_err(|error| quoted("loader.New", error))?;
        let above = std::mem::take(acc);
        *acc = self
            .accumulate_directory(&loader, path, above, KustomizationKind::Component)
            .map_err(|error| quoted("accumulateDirectory:", error))?;
        Ok(())
    }

    fn accumulate_directory(
        &self,
        loader: &Loader<'_>,
        path: &str,
        acc: Accumulator,
        kind: KustomizationKind,
    ) -> Result<Accumulator, Error> {
        let root = loader.root();
        let mut kustomization =
            model::load(loader).context(|| format!("couldn't make target for path '{root}'"))?;
        kustomization
            .fields
            .build_metadata
            .clone_from(&self.kustomization.fields.build_metadata);
        set_schema(loader, &kustomization, false)?;
        match (kind, kustomization.fields.kind) {
            (KustomizationKind::Component, KustomizationKind::Kustomization) => {
                let problem = format!("expected kind 'Component' for path '{root}' but got 'Kustomization'");
                return Err(Error::new(Step::Load, problem));
            }
            (KustomizationKind::Kustomization, KustomizationKind::Component) => {
                let problem = format!("expected kind != 'Component' for path '{root}'");
                return Err(Error::new(Step::Load, problem));
            }
            _ => {}
        }
        let namespace = &self.kustomization.fields.namespace;
        let helm_namespace = if namespace.is_empty() {
            &self.helm_namespace
        } else {
            namespace
        };
        let target = Target {
            loader,
            kustomization,
            origin: self.origin.as_ref().map(|origin| origin.append(path)),
            helm_namespace: helm_namespace.clone(),
        };
        target
            .accumulate(acc)
            .context(|| format!("recursed accumulation of path '{root}'"))
    }

    /// Reads the configurations of generators, transformers or validators: inline documents, files and directories.
    fn configurations(&self, entries: &[String]) -> Result<ResMap, Error> {
        let mut acc = Accumulator::default();
        let mut paths = Vec::new();
        let file = Arc::new(self.kustomization.file.clone());
        for entry in entries {
            let inline = read::resources(entry.as_bytes(), &file, self.run()).and_then(unique);
            let mut inline = match inline {
                Ok(inline) => inline,
                Err(error) if error.exceeded().is_some() || !read::is_path(entry) => return Err(error),
                Err(_) => {
                    paths.push(entry.clone());
                    continue;
                }
            };
            if let Some(origin) = &self.origin {
                let origin = Arc::new(origin.append(self.file_name()));
                for resource in inline.iter_mut() {
                    resource.history.origin = Some(origin.clone());
                }
            }
            acc.resources.append_all(inline)?;
        }
        self.accumulate_resources(&mut acc, &paths)?;
        Ok(acc.resources)
    }

    fn generate(&self, acc: &mut Accumulator) -> Result<(), Error> {
        let fields = &self.kustomization.fields;
        let ctx = self.plugin_context();
        let mut generated = pipeline::generate(self)?;
        let configurations = self.configurations(&fields.generators);
        let configurations = self.at(
            "generators",
            configurations.context(|| "loading generator plugins"),
        )?;
        for config in configurations.iter() {
            let made = plugin::generator(config)
                .and_then(|generator| generator.generate(&ctx))
                .context(|| "loading generator plugins");
            let made = self.at("generators", made)?;
            let origin = config
                .history
                .origin
                .as_ref()
                .map(|origin| Arc::new(origin.plugin(config.id())));
            generated.push((made, origin, "generators"));
        }
        for (mut made, origin, field) in generated {
            if let Some(origin) = &origin {
                metadata::set_origin(&mut made, origin);
            }
            let absorbed = acc.resources.absorb_all(made);
            self.at(
                field,
                absorbed.context(|| format!("merging from generator of {field}")),
            )?;
            self.run().fits(acc.resources.len(), self.loader.root())?;
            self.run().check(self.loader.root())?;
        }
        Ok(())
    }

    fn transform(&self, acc: &mut Accumulator) -> Result<(), Error> {
        let ctx = self.plugin_context();
        // All are made before one runs: a broken last one is reported before the first changes anything.
        let mut stages = pipeline::transformers(self, &acc.config)?;
        stages.extend(self.plugins("transformers", &self.kustomization.fields.transformers)?);
        for stage in stages {
            self.run().step(acc.resources.len() as u64, self.loader.root())?;
            self.at(stage.field, stage.transformer.transform(&mut acc.resources, &ctx))?;
            if let Some(origin) = &stage.origin {
                metadata::add_transformation(&mut acc.resources, origin);
                // Each object holds a pointer more.
                let pointers = acc.resources.len().saturating_mul(size_of::<usize>());
                self.run().grow(pointers, self.loader.root())?;
            }
            acc.resources.drop_empties();
        }
        Ok(())
    }

    fn plugins(&self, field: &'static str, entries: &[String]) -> Result<Vec<pipeline::PipelineStep>, Error> {
        let configurations = self.at(field, self.configurations(entries))?;
        let mut stages = Vec::with_capacity(configurations.len());
        for config in configurations.iter() {
            let transformer = self.at(field, plugin::transformer(config, &self.plugin_context()))?;
            let origin = config
                .history
                .origin
                .as_ref()
                .map(|origin| Arc::new(origin.plugin(config.id())));
            stages.push(pipeline::PipelineStep {
                transformer,
                origin,
                field,
            });
        }
        Ok(stages)
    }

    fn validate(&self, acc: &mut Accumulator) -> Result<(), Error> {
        for stage in self.plugins("validators", &self.kustomization.fields.validators)? {
            let before = acc.resources.clone();
            let ran = stage
                .transformer
                .transform(&mut acc.resources, &self.plugin_context());
            self.at(stage.field, ran)?;
            self.at(stage.field, unchanged(&before, &acc.resources))?;
        }
        Ok(())
    }
}

/// Returns true if an entry can't be a directory: it was not YAML, or it is a URL that is not an address of a repository.
fn is_file(path: &str, as_file: &Error) -> bool {
    (as_file.is_malformed_yaml() || loader::is_url(path)) && remote::parse(path).is_err()
}

/// quirk: the original puts the error of a component into quotation marks.
fn quoted(context: &str, error: Error) -> Error {
    if error.exceeded().is_some() {
        return error;
    }
    Error::new(Step::Load, format!("{context} {:?}", error.to_string()))
}

/// A label that validators may add.
const VALIDATED_BY: &str = "validated-by";

/// Refuses objects that a validator changed.
fn unchanged(before: &ResMap, after: &ResMap) -> Result<(), Error> {
    let fail = |problem: String| {
        let problem = format!("validator shouldn't modify the resource map: {problem}");
        Err(Error::new(Step::Plugin, problem))
    };
    if before.len() != after.len() {
        return fail(format!(
            "lists have different number of entries: {} and {}",
            before.len(),
            after.len()
        ));
    }
    for (old, new) in before.iter().zip(after.iter()) {
        let mut new = new.clone();
        let mut labels = new.metadata_map("labels");
        if labels.remove(VALIDATED_BY).is_some() {
            new.set_metadata_map("labels", &labels);
        }
        if old.node() != new.node() {
            return fail(format!("nodes unequal: {}", old.id()));
        }
    }
    Ok(())
}

/// Collects the objects of one document; no two may have the same identity.
fn unique(resources: Vec<Resource>) -> Result<ResMap, Error> {
    let mut unique = ResMap::new();
    resources
        .into_iter()
        .try_for_each(|resource| unique.append(resource))?;
    Ok(unique)
}

/// Obeys the `openapi` field of a kustomization.
pub(crate) fn set_schema(
    loader: &Loader<'_>,
    kustomization: &Kustomization,
    root: bool,
) -> Result<(), Error> {
    let openapi = &kustomization.fields.openapi;
    let set = || {
        let document = match openapi.get("path") {
            Some(path) => Some(loader.load(path)?.0),
            None => None,
        };
        let run = loader.run();
        run.schema.borrow_mut().set(
            openapi,
            document.as_deref(),
            root,
            run.options.openapi,
            run.budget,
        )
    };
    set().map_err(|error| error.at(&kustomization.file, kustomization.line("openapi")))
}
