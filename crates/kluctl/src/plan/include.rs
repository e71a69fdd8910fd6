//! Projects that items include, of the same source or another one.

use std::sync::Arc;

use tree::{NodeKind, TreePath};
use yaml::Map;

use super::{Planner, Scope};
use crate::{
    Error, SourceAddress, args,
    deployment::{ItemConfig, ItemOutline, ItemSource},
    fields::Fields,
    files,
    project::arguments,
    source::{self, ProjectSource, Remote},
    vars::Context,
};

impl Planner<'_> {
    pub(super) fn include(
        &mut self,
        scope: &Scope,
        fields: &Fields<'_>,
        item: &ItemConfig,
        outline: &mut ItemOutline,
    ) -> Result<(), Error> {
        let (source, dir) = match &item.source {
            ItemSource::Remote(remote) => self.fetch(fields, remote)?,
            _ => (scope.source.clone(), self.directory(scope, fields, &item.source)?),
        };
        let start = self.start(scope, &source, &dir, item);
        let start = source.say(start)?;
        let start = match source.id == scope.source.id {
            true => start,
            false => start.without_history(),
        };
        let (vars, loaded) = self.load_vars(&start, scope, &scope.search, fields)?;
        outline.loaded(loaded);
        let inner = scope.included(source.clone(), dir, &item.tags, vars);
        let project = self.project(inner, Some(fields.file));
        outline.include = Some(source.say(project)?);
        Ok(())
    }

    /// Fetches another source, which is a new one each time.
    fn fetch(
        &mut self,
        fields: &Fields<'_>,
        remote: &Remote,
    ) -> Result<(Arc<ProjectSource>, TreePath), Error> {
        let fetched = source::fetch(self.inputs.sources, &remote.address, self.inputs.budget)?;
        self.sources += 1;
        let source = ProjectSource {
            id: self.sources,
            tree: fetched.tree,
            name: Some(remote.address.to_string()),
        };
        if !matches!(source.tree.kind(&remote.sub_dir)?, Some(NodeKind::Dir)) {
            let problem = format!("{} has no directory {}", remote.address, remote.sub_dir);
            let field = match remote.address {
                SourceAddress::Git { .. } => "git",
                SourceAddress::Oci { .. } => "oci",
            };
            return Err(fields.invalid(field, problem));
        }
        Ok((Arc::new(source), remote.sub_dir.clone()))
    }

    /// Returns the initial variables of an included project: all of the parent's, or the arguments of a library.
    fn start(
        &self,
        scope: &Scope,
        source: &ProjectSource,
        dir: &TreePath,
        item: &ItemConfig,
    ) -> Result<Context, Error> {
        let Some(file) = files::find(&*source.tree, dir, ".kluctl-library") else {
            return Ok(scope.vars.clone());
        };
        let value = files::parse_map(&file, &source.tree.read(&file)?, self.inputs.budget)?;
        let fields = Fields::new(&file, &value, "", 1)?;
        fields.check(&["args"], &[])?;
        let declared = arguments(&fields)?;
        let args = args::compute(
            &declared,
            &crate::merge::map_through_json(&item.args),
            &Map::new(),
        )?;
        let mut vars = if item.pass_vars {
            scope.vars.map().clone()
        } else {
            Map::new()
        };
        vars.insert("args", args);
        Ok(scope.vars.with(vars))
    }
}
