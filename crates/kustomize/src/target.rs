//! A kustomization that is being built, and the context of its directory.

use crate::{
    Error,
    loader::Loader,
    model::{self, Kustomization},
    origin::Origin,
    run::Run,
    transform::PluginContext,
};

pub(crate) struct Target<'a> {
    pub(crate) loader: &'a Loader<'a>,
    pub(crate) kustomization: Kustomization,
    /// The origin of the directory, if origins are recorded.
    pub(crate) origin: Option<Origin>,
    /// The namespace of the kustomizations above, for Helm charts without one.
    pub(crate) helm_namespace: String,
}

impl<'a> Target<'a> {
    /// Reads the kustomization of a directory that is built on its own.
    pub(crate) fn root(loader: &'a Loader<'a>) -> Result<Self, Error> {
        let kustomization = model::load(loader)?;
        let recorded = !kustomization.fields.build_metadata.is_empty();
        Ok(Self {
            loader,
            kustomization,
            origin: recorded.then(Origin::default),
            helm_namespace: String::new(),
        })
    }

    pub(crate) fn run(&self) -> &'a Run<'a> {
        self.loader.run()
    }

    pub(crate) fn plugin_context(&self) -> PluginContext<'a> {
        PluginContext {
            loader: self.loader,
            run: self.loader.run(),
        }
    }

    pub(crate) fn file_name(&self) -> &str {
        self.kustomization.file.name()
    }

    /// Adds the file and line of a field to an error.
    pub(crate) fn at<T>(&self, field: &str, result: Result<T, Error>) -> Result<T, Error> {
        let kustomization = &self.kustomization;
        result.map_err(|error| error.at(&kustomization.file, kustomization.line(field)))
    }
}
