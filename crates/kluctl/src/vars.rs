//! Variables and their sources.

use std::sync::Arc;

use jinja::{Renderer, Vars};
use tree::{Budget, Tree, TreePath};
use yaml::{Map, Value};

use crate::{Error, fields::Fields, files, jsonpath, merge, sops};

/// The variables that something sees. Cheap to clone as long as nothing is added.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    map: Arc<Map>,
    converted: Vars,
}

impl Context {
    pub(crate) fn new(map: Map) -> Self {
        Self {
            converted: Vars::sorted(&map),
            map: Arc::new(map),
        }
    }

    /// A renderer that sees these variables.
    pub(crate) fn renderer(&self, tree: &Arc<dyn Tree>, search: &[TreePath]) -> Renderer {
        Renderer::new(tree.clone(), search, &self.converted)
    }
}

/// Where variables are loaded, and from what.
pub(crate) struct Loader<'a> {
    pub(crate) tree: &'a Arc<dyn Tree>,
    /// Where `file` sources are found.
    pub(crate) search: &'a [TreePath],
    pub(crate) budget: &'a Budget,
    /// What templates said while they were rendered.
    pub(crate) messages: &'a mut Vec<String>,
}

const OBEYED: &[&str] = &[
    "values",
    "file",
    "ignoreMissing",
    "noOverride",
    "sensitive",
    "multidoc",
    "targetPath",
    "when",
];
const NOT_OBEYED: &[&str] = &[
    "git",
    "gitFiles",
    "clusterConfigMap",
    "clusterSecret",
    "clusterObject",
    "systemEnvVars",
    "http",
    "awsSecretsManager",
    "gcpSecretManager",
    "azureKeyVault",
    "vault",
    "renderedVars",
    "renderedSensitive",
];

impl Loader<'_> {
    /// Loads sources one after the other; each sees the variables of those before it.
    pub(crate) fn load(&mut self, context: &Context, fields: &Fields<'_>) -> Result<Context, Error> {
        let sources = fields.seq("vars")?;
        let mut context = context.clone();
        for (index, source) in sources.iter().enumerate() {
            let path = fields.path_of(&format!("vars[{index}]"));
            let line = fields.line_of("vars");
            let raw = Fields::new(fields.file, source, &path, line)?;
            raw.check(OBEYED, NOT_OBEYED)?;
            if let Some(loaded) = self.load_source(&context, &raw, &path)? {
                let mut map = (*context.map).clone();
                if raw.boolean("noOverride")? {
                    let mut base = loaded;
                    merge::deep(&mut base, &map);
                    map = base;
                } else {
                    merge::deep(&mut map, &loaded);
                }
                context = Context::new(map);
            }
        }
        Ok(context)
    }

    /// The variables of one source; none when its condition is false.
    fn load_source(&mut self, context: &Context, raw: &Fields<'_>, path: &str) -> Result<Option<Map>, Error> {
        let mut renderer = context.renderer(self.tree, self.search);
        let template = |source| Error::Template {
            what: format!("{}: {path}", raw.file),
            source,
        };
        let rendered = renderer.render_value(&Value::Map(raw.map.clone()), self.budget);
        let rendered = rendered.map_err(|mut errors| template(errors.remove(0)))?;
        let source = Fields::new(raw.file, &rendered, path, raw.line())?;
        let when = source.string("when")?.unwrap_or_default();
        let wanted = renderer.condition(&when, self.budget).map_err(template)?;
        self.messages.extend(renderer.take_messages());
        if !wanted {
            return Ok(None);
        }
        let target_path = source.filled_string("targetPath")?;
        if source.boolean("multidoc")? && target_path.is_none() {
            let problem = "multidoc vars sources can only be used when targetPath is also specified";
            return Err(source.invalid("multidoc", format!("{path}: {problem}")));
        }
        let loaded = self.load_value(&source, &mut renderer, path)?;
        let loaded = merge::through_json(&loaded);
        match (target_path, loaded) {
            (Some(target), value) => {
                let wrapped = jsonpath::wrap(&target, value);
                let failed = |why| format!("{path}: failed to parse targetPath {target:?}: {why}");
                wrapped
                    .map(Some)
                    .map_err(|why| source.invalid("targetPath", failed(why)))
            }
            (None, Value::Map(map)) => Ok(Some(map)),
            (None, _) => {
                let problem = format!("{path}: 'targetPath' is required for this variable source");
                Err(source.invalid("file", problem))
            }
        }
    }

    fn load_value(
        &mut self,
        source: &Fields<'_>,
        renderer: &mut Renderer,
        path: &str,
    ) -> Result<Value, Error> {
        let there = |key: &str| source.map.get(key).is_some_and(|value| !value.is_null());
        match (there("values"), there("file")) {
            (true, false) => Ok(source
                .map("values")?
                .map_or_else(|| Value::Map(Map::new()), |map| Value::Map(map.clone()))),
            (false, true) => self.load_file(source, renderer, path),
            (true, true) => Err(source.invalid("file", format!("{path}: more then one vars source type"))),
            (false, false) => Err(source.invalid("", format!("{path}: unknown vars source type"))),
        }
    }

    fn load_file(
        &mut self,
        source: &Fields<'_>,
        renderer: &mut Renderer,
        path: &str,
    ) -> Result<Value, Error> {
        let name = source.string("file")?.unwrap_or_default();
        let multidoc = source.boolean("multidoc")?;
        let empty = if multidoc {
            Value::Seq(Vec::new())
        } else {
            Value::Map(Map::new())
        };
        let Some(file) = renderer.find(&name) else {
            if source.boolean("ignoreMissing")? {
                return Ok(empty);
            }
            return Err(Error::VarsFile {
                path: name.clone(),
                source: jinja::Error::NotFound(name),
            });
        };
        let text = renderer
            .render_file(&file, self.budget)
            .map_err(|source| Error::VarsFile {
                path: file.as_str().to_owned(),
                source,
            })?;
        self.messages.extend(renderer.take_messages());
        let value = if multidoc {
            let documents = yaml::read::goyaml_all(&text, self.budget).map_err(|source| Error::Yaml {
                file: file.clone(),
                source,
            })?;
            Value::Seq(documents.into_iter().map(|document| document.value).collect())
        } else {
            files::parse(&file, &text, self.budget)?
        };
        if sops::is_encrypted(&value) {
            return Err(sops::unsupported(&file));
        }
        match value {
            Value::Null => Ok(empty),
            value if multidoc || value.as_map().is_some() => Ok(value),
            other => {
                let problem = format!("{path}: a vars file is a map, not {}", other.type_name());
                Err(Error::Invalid {
                    file,
                    line: 1,
                    problem,
                })
            }
        }
    }
}
