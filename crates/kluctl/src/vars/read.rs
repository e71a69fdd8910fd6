//! Reads the value of one source.

use std::sync::Arc;

use jinja::Renderer;
use objects::jsonpath::JsonPath;
use tree::{Tree, TreePath};
use yaml::{Map, Value};

use super::{
    Context, Loaded, RenderInputs,
    external::{HttpRequest, NoVarsSources, SecretQuery, VarsError, VarsSources},
    source::VarsSource,
};
use crate::{Error, SourceAddress, decrypt, fields::Fields, files, source as sources};

/// Describes the value of a source in messages.
pub(super) const WHAT: &str = "its value";

pub(super) struct Reader<'a> {
    pub(super) inputs: RenderInputs<'a>,
    pub(super) context: &'a Context,
    pub(super) fields: &'a Fields<'a>,
    /// The path of the source in its file.
    pub(super) path: &'a str,
    pub(super) ignore_missing: bool,
    pub(super) multidoc: bool,
    pub(super) secret: bool,
    pub(super) renderer: Renderer,
    /// The files that the renderer sees.
    pub(super) tree: Arc<dyn Tree>,
    pub(super) messages: &'a mut Vec<String>,
    /// Size of the files of `gitFiles` that were read.
    pub(super) bytes: u64,
}

impl Reader<'_> {
    pub(super) fn read(&mut self, source: &VarsSource) -> Result<Loaded, Error> {
        let sensitive = source.is_sensitive();
        let value = match source {
            VarsSource::Values(map) => Some(Value::Map(map.clone())),
            VarsSource::File(name) => return self.file(name),
            VarsSource::Git { address, path } => return self.git(address, path),
            VarsSource::GitFiles(files) => return self.git_files(files),
            VarsSource::ClusterData(data) => self.cluster_data(data)?,
            VarsSource::ClusterObject(object) => self.cluster_object(object)?,
            VarsSource::Environment(variables) => Some(self.environment(variables)?),
            VarsSource::Http { request, json_path } => self.http(request, json_path.as_deref())?,
            VarsSource::Secret(query) => self.secret(query)?,
        };
        Ok(Loaded { value, sensitive })
    }

    /// Returns the source of variables that don't come from files.
    pub(super) fn sources(&self) -> &dyn VarsSources {
        self.inputs.vars.unwrap_or(&NoVarsSources)
    }

    /// Makes an error that names the source.
    pub(super) fn failed(&self, problem: impl std::fmt::Display) -> Error {
        self.fields.invalid("", format!("{}: {problem}", self.path))
    }

    /// Returns the value; `None` if it is missing and `ignoreMissing` is set.
    pub(super) fn unless_missing<T>(&self, found: Result<T, VarsError>) -> Result<Option<T>, Error> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(VarsError::Missing(_)) if self.ignore_missing => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    pub(super) fn render(&mut self, text: &str) -> Result<String, Error> {
        let rendered = self.renderer.render_str(text, self.inputs.budget);
        self.messages.extend(self.renderer.take_messages());
        let rendered = rendered.map_err(|source| Error::Template {
            what: format!("{}: {}", self.fields.file, self.path),
            source,
        });
        self.veiled(WHAT, rendered)
    }

    /// Parses a string of no file, which errors describe.
    pub(super) fn parse(&self, what: &str, text: &str) -> Result<Value, Error> {
        let parsed = files::parse(self.fields.file, text.as_bytes(), self.inputs.budget);
        self.veiled(what, parsed).map_err(|error| match error {
            Error::Yaml { source, .. } => self.failed(source),
            error => error,
        })
    }

    fn parse_all(&self, text: &[u8]) -> Result<Value, Error> {
        let parsed = files::parse_all(self.fields.file, text, self.inputs.budget);
        self.veiled(WHAT, parsed)
    }

    /// Parses a string. If it is sensitive, an error names only the line: messages of parsers quote their input.
    fn veiled<T>(&self, what: &str, made: Result<T, Error>) -> Result<T, Error> {
        made.map_err(|error| match self.secret {
            true => error.veiled(|line, problem| {
                let in_line = line.map_or_else(String::new, |line| format!(" in its line {line}"));
                self.failed(format!("{what} {problem}{in_line}"))
            }),
            false => error,
        })
    }

    /// Renders and parses a string.
    pub(super) fn text(&mut self, text: &str) -> Result<Value, Error> {
        if self.multidoc {
            // quirk: as in the original, its templates are not rendered.
            return self.parse_all(text.as_bytes());
        }
        let rendered = self.render(text)?;
        self.parse(WHAT, &rendered)
    }

    fn empty(&self) -> Value {
        if self.multidoc {
            Value::Seq(Vec::new())
        } else {
            Value::Map(Map::new())
        }
    }

    fn file(&mut self, name: &str) -> Result<Loaded, Error> {
        let Some(file) = self.renderer.find(name) else {
            if self.ignore_missing {
                return Ok(Loaded {
                    value: Some(self.empty()),
                    sensitive: false,
                });
            }
            return Err(Error::VarsFile {
                path: name.to_owned(),
                source: jinja::Error::NotFound(name.to_owned()),
            });
        };
        let budget = self.inputs.budget;
        let rendered = self.renderer.render_file(&file, budget);
        self.messages.extend(self.renderer.take_messages());
        let text = rendered.map_err(|source| Error::VarsFile {
            path: file.as_str().to_owned(),
            source,
        })?;
        let opened = decrypt::open(self.inputs.decrypt, &*self.tree, &file, text, budget)?;
        let parse = match self.multidoc {
            true => files::parse_all,
            false => files::parse,
        };
        let value = match opened.read(&file, parse, budget)? {
            Value::Null => self.empty(),
            value if self.multidoc || value.as_map().is_some() => value,
            other => {
                let problem = format!("{}: a vars file is a map, not {}", self.path, other.type_name());
                return Err(Error::Invalid {
                    file,
                    line: 1,
                    problem,
                });
            }
        };
        Ok(Loaded {
            value: Some(value),
            sensitive: opened.secret,
        })
    }

    /// Reads a file of another repository, with the files of that repository only.
    fn git(&mut self, address: &SourceAddress, path: &str) -> Result<Loaded, Error> {
        let fetched = sources::fetch(self.inputs.sources, address, self.inputs.budget)?;
        self.renderer = self
            .context
            .without_history()
            .renderer(&fetched.tree, &[TreePath::root()]);
        self.tree = fetched.tree;
        sources::say(&address.to_string(), self.file(path))
    }

    fn http(&mut self, request: &HttpRequest, json_path: Option<&str>) -> Result<Option<Value>, Error> {
        let answer = self.sources().http(request, self.inputs.budget);
        let answer = answer.and_then(|answer| {
            if (200..300).contains(&answer.status) {
                return Ok(answer);
            }
            let problem = format!(
                "http request to {} failed with status code {}",
                kustomize::remote::redact_address(&request.url),
                answer.status
            );
            Err(match answer.status {
                404 => VarsError::Missing(problem),
                _ => VarsError::Failed(problem),
            })
        });
        let Some(answer) = self.unless_missing(answer)? else {
            return Ok(None);
        };
        if self.multidoc && json_path.is_none() {
            return self.parse_all(&answer.body).map(Some);
        }
        let body = String::from_utf8_lossy(&answer.body);
        let value = self.parse(WHAT, &body)?;
        let Some(json_path) = json_path else {
            return Ok(Some(value));
        };
        let path = JsonPath::parse(json_path).map_err(|why| self.failed(format!("jsonPath: {why}")))?;
        let found = path
            .find(&value)
            .map_err(|error| self.failed(error.to_string()))?;
        let first = found.first().and_then(|at| objects::path::get(&value, at));
        match first.map(|value| (value, value.as_str())) {
            Some((_, Some(text))) if self.multidoc => self.parse_all(text.as_bytes()).map(Some),
            Some((_, Some(text))) => self.parse(WHAT, text).map(Some),
            Some(_) => Err(self.failed(format!(
                "{json_path} in the result of the http request is not a string"
            ))),
            None => Err(self.failed(format!("{json_path} not found in the result of the http request"))),
        }
    }

    fn secret(&mut self, query: &SecretQuery) -> Result<Option<Value>, Error> {
        let query = with_target(query, self.inputs.aws);
        let found = self.sources().secret(&query, self.inputs.budget);
        match self.unless_missing(found)? {
            Some(text) => self.text(&text).map(Some),
            None => Ok(None),
        }
    }
}

/// Adds the target's settings for AWS to a query.
fn with_target(query: &SecretQuery, aws: &Map) -> SecretQuery {
    let mut query = query.clone();
    if let SecretQuery::Aws {
        profile,
        service_account,
        ..
    } = &mut query
    {
        let of_target = || aws.get_str("profile").map(str::to_owned);
        *profile = profile
            .take()
            .or_else(of_target)
            .filter(|profile| !profile.is_empty());
        let account = aws.get_map("serviceAccount");
        *service_account = account.and_then(|account| {
            let part = |key: &str| account.get_str(key).map(str::to_owned);
            Some((part("namespace")?, part("name")?))
        });
    }
    query
}
