//! Objects made from literals and files: ConfigMaps, Secrets, and the hash that their names end in.

use crate::{
    Error,
    model::{GeneratorArgs, GeneratorOptions},
    resmap::ResMap,
    resource::Resource,
    transform::Scene,
};

/// Makes objects.
pub(crate) trait Generator {
    /// Makes the objects.
    ///
    /// # Errors
    /// When a file can't be read, or the configuration makes no object.
    fn generate(&self, scene: &Scene<'_>) -> Result<ResMap, Error>;
}

/// The ConfigMap of an entry of `configMapGenerator`.
pub(crate) fn config_map(
    _args: &GeneratorArgs,
    _global: Option<&GeneratorOptions>,
    _scene: &Scene<'_>,
) -> Result<Resource, Error> {
    Err(Error::new(crate::Step::Generator, "stub"))
}

/// The Secret of an entry of `secretGenerator`.
pub(crate) fn secret(
    _args: &GeneratorArgs,
    _global: Option<&GeneratorOptions>,
    _scene: &Scene<'_>,
) -> Result<Resource, Error> {
    Err(Error::new(crate::Step::Generator, "stub"))
}

/// A `ConfigMapGenerator`, `SecretGenerator` or `IAMPolicyGenerator`, by the kind of its configuration.
///
/// # Errors
/// When something in the configuration is of the wrong type.
pub(crate) fn from_config(_config: &yaml::Value) -> Result<Box<dyn Generator>, Error> {
    Err(Error::new(crate::Step::Plugin, "stub"))
}

/// What a generated object becomes that merges with or replaces an older one, as its behavior says.
pub(crate) fn absorbed(_old: &Resource, new: Resource) -> Resource {
    new
}

/// Adds the hash of their content to the names of the objects that want it.
pub(crate) fn add_hashes(_resources: &mut ResMap) -> Result<(), Error> {
    Ok(())
}
