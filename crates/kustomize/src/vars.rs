//! `vars`: fields whose `$(NAME)` is replaced by a value of another object.

mod expand;
#[cfg(test)]
mod tests;
mod value;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::Arc,
};

use tree::TreePath;
use yaml::{
    Node,
    node::{Content, Scalar, Tag},
};

use self::{
    expand::{Expanded, expand},
    value::{Field, Value},
};
use crate::{
    Error,
    error::{Context as _, Step},
    fieldspec::{self, ByKind, Create, FieldSpec, Path},
    id::{Gvk, Id},
    lookup::has_type,
    model::{Kustomization, Var, VarObject},
    resmap::ResMap,
    resource::Written,
    run::Run,
};

/// The default field of a var.
const DEFAULT_FIELD: &str = "metadata.name";

/// The vars of a kustomization and of those below it, by name.
#[derive(Debug, Clone, Default)]
pub(crate) struct VarSet {
    vars: BTreeMap<String, Declared>,
}

/// A var, and the file of its declaration.
#[derive(Debug, Clone)]
struct Declared {
    name: String,
    kind: Gvk,
    field: String,
    file: Arc<TreePath>,
    line: u32,
}

impl fmt::Display for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{} {} {{{}}}}}", self.name, self.kind, self.field)
    }
}

impl VarSet {
    /// Adds the vars of a kustomization, and records them on the objects that have their values. Fails if several objects
    /// fit a var, or its name is taken.
    pub(crate) fn declare(
        &mut self,
        kustomization: &Kustomization,
        resources: &mut ResMap,
    ) -> Result<(), Error> {
        let vars = &kustomization.fields.vars;
        let line = kustomization.line("vars");
        let declared = note_sources(vars, resources).and_then(|()| {
            let file = Arc::new(kustomization.file.clone());
            vars.iter().try_for_each(|var| {
                let field = match var.field.field_path.as_str() {
                    "" => DEFAULT_FIELD,
                    field => field,
                };
                self.insert(Declared {
                    name: var.name.clone(),
                    kind: kind_of(&var.object),
                    field: field.to_owned(),
                    file: file.clone(),
                    line,
                })
            })
        });
        declared
            .context(|| {
                // The var as written.
                let written = |var: &Var| show(var, &written_kind(&var.object));
                let vars: Vec<_> = vars.iter().map(written).collect();
                format!("merging vars [{}]", vars.join(" "))
            })
            .map_err(|error| error.at(&kustomization.file, line))
    }

    /// Adds the vars of a kustomization below. Fails if a name is taken, even by an equal var.
    pub(crate) fn absorb(&mut self, other: Self) -> Result<(), Error> {
        other.vars.into_values().try_for_each(|var| self.insert(var))
    }

    fn insert(&mut self, var: Declared) -> Result<(), Error> {
        if self.vars.contains_key(&var.name) {
            let problem = format!("var '{}' already encountered", var.name);
            return Err(Error::new(Step::Var, problem));
        }
        self.vars.insert(var.name.clone(), var);
        Ok(())
    }

    /// Replaces the vars in the fields of a table. Fails if the value of a var is missing, used or not, or a field can't
    /// have vars in it.
    pub(crate) fn resolve(
        &self,
        resources: &mut ResMap,
        fields: &[FieldSpec],
        run: &Run<'_>,
    ) -> Result<(), Error> {
        let Some(first) = self.vars.values().next() else {
            return Ok(());
        };
        let values = self.values(resources, run)?;
        let mut replacer = Replacer {
            values: &values,
            used: BTreeSet::new(),
            run,
        };
        let replaced = replacer.replace_all(resources, fields);
        let unused = self.vars.keys().map(String::as_str);
        let unused: Vec<_> = unused.filter(|name| !replacer.used.contains(name)).collect();
        if !unused.is_empty() {
            let text = format!("well-defined vars that were never replaced: {}", unused.join(","));
            run.warn(&first.file, text);
        }
        replaced
    }

    /// Returns the values of the vars, without those that are a map or a list.
    fn values(&self, resources: &ResMap, run: &Run<'_>) -> Result<HashMap<&str, Value>, Error> {
        let mut sources = HashMap::new();
        for resource in resources.iter() {
            for name in &resource.history.vars {
                sources.entry(name.as_str()).or_insert(resource);
            }
        }
        let mut values = HashMap::new();
        for (name, var) in &self.vars {
            let fail = |problem| Error::new(Step::Var, problem).at(&var.file, var.line);
            let Some(source) = sources.get(name.as_str()) else {
                let problem =
                    format!("var '{var}' cannot be mapped to a field in the set of known resources");
                return Err(fail(problem));
            };
            match value::field(source.node(), &var.field) {
                Field::Missing => {
                    let problem = format!(
                        "field specified in var '{var}' not found in corresponding resource {}",
                        source.id()
                    );
                    return Err(fail(problem));
                }
                Field::Structure => {
                    let text =
                        format!("var '{var}' holds a map or a list, which $({name}) can't be replaced by");
                    run.warn(&var.file, text);
                }
                Field::Value(value) => {
                    values.insert(name.as_str(), value);
                }
            }
        }
        Ok(values)
    }
}

/// Records on each object the vars that take their values from it.
fn note_sources(vars: &[Var], resources: &mut ResMap) -> Result<(), Error> {
    if vars.is_empty() {
        return Ok(());
    }
    let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, resource) in resources.iter().enumerate() {
        if resource.is_empty() {
            continue;
        }
        let names = resource
            .history
            .previous
            .iter()
            .map(|previous| previous.name.as_str());
        for name in names.chain([resource.name()]) {
            let indices = by_name.entry(name.to_owned()).or_default();
            if indices.last() != Some(&index) {
                indices.push(index);
            }
        }
    }
    for var in vars {
        let kind = kind_of(&var.object);
        let wanted = Id::previous(kind, var.object.name.clone(), var.object.namespace.clone());
        let named = by_name.get(&wanted.name).map(Vec::as_slice).unwrap_or_default();
        let fits = |index: &&usize| resources.get(**index).is_some_and(|it| is_or_was(it, &wanted));
        let found: Vec<usize> = named.iter().filter(fits).copied().collect();
        match found.as_slice() {
            [] => {}
            [index] => {
                if let Some(resource) = resources.get_mut(*index) {
                    resource.history.vars.push(var.name.clone());
                }
            }
            several => {
                let problem = format!(
                    "found {} resId matches for var {} (unable to disambiguate)",
                    several.len(),
                    show(var, &wanted.gvk)
                );
                return Err(Error::new(Step::Var, problem));
            }
        }
    }
    Ok(())
}

/// Returns true if an object is or was the one that a var names; without a namespace it names objects of all namespaces.
fn is_or_was(resource: &crate::resource::Resource, wanted: &Id) -> bool {
    let same = |id: &Id| match wanted.namespace.as_str() {
        "" => id.same_kind_and_name(wanted),
        _ => id == wanted,
    };
    same(resource.id()) || resource.previous_ids().any(|id| same(&id))
}

fn written_kind(object: &VarObject) -> Gvk {
    Gvk {
        group: object.group.clone().into(),
        version: object.version.clone().into(),
        kind: object.kind.clone().into(),
    }
}

/// Returns the kind of a var's object: an apiVersion of one or two parts precedes group and version.
fn kind_of(object: &VarObject) -> Gvk {
    let mut kind = written_kind(object);
    let parts: Vec<_> = object.api_version.split('/').collect();
    match parts.as_slice() {
        [""] => {}
        [version] => kind.version = (*version).to_owned().into(),
        [group, version] => {
            kind.group = (*group).to_owned().into();
            kind.version = (*version).to_owned().into();
        }
        _ => {}
    }
    kind
}

fn show(var: &Var, kind: &Gvk) -> String {
    format!("{{{} {kind} {{{}}}}}", var.name, var.field.field_path)
}

/// Replaces vars in fields, and records the used ones.
struct Replacer<'v> {
    values: &'v HashMap<&'v str, Value>,
    used: BTreeSet<&'v str>,
    run: &'v Run<'v>,
}

impl Replacer<'_> {
    fn replace_all(&mut self, resources: &mut ResMap, fields: &[FieldSpec]) -> Result<(), Error> {
        let mut paths = ByKind::new(fields.iter().map(|field| (&field.gvk, Path::of(field))));
        for resource in resources.iter_mut() {
            let file = resource.file.clone();
            self.run.step(1, &file)?;
            let kind = resource.gvk().clone();
            let node = resource.node_mut();
            let mut set = |node: &mut Node, written: &mut Written| self.replace(node, written, &file);
            let mut paths = paths.of(&kind);
            let replaced =
                paths.try_for_each(|path| fieldspec::visit_path(node, path, Create::Nothing, &mut set));
            replaced.map_err(|error| error.at(&file, resource.line))?;
        }
        Ok(())
    }

    /// Replaces the vars in a field: in a string, in the strings of a map, or in all items of a list.
    fn replace(&mut self, node: &mut Node, written: &mut Written, file: &TreePath) -> Result<(), Error> {
        match &mut node.content {
            Content::Scalar(_) => written.write(node, |node| self.replace_in(node, file)),
            Content::Seq(items) => items.iter_mut().try_for_each(|item| {
                match item
                    .as_scalar()
                    .is_some_and(|scalar| scalar.is_string() || !has_type(item))
                {
                    true => written.write(item, |item| self.replace_in(item, file)),
                    false => Err(Error::new(Step::Var, "invalid value type expect a string")),
                }
            }),
            Content::Map(map) => map.entries_mut().iter_mut().try_for_each(|entry| {
                let key = &entry.key;
                if !key.is_string() {
                    let problem = format!("invalid map key: value='{}', tag='{}'", key.text, tag(key));
                    return Err(Error::new(Step::Var, problem));
                }
                written.write(&mut entry.value, |value| self.replace_in(value, file))
            }),
        }
    }

    fn replace_in(&mut self, node: &mut Node, file: &TreePath) -> Result<(), Error> {
        type_text(node);
        let Some(scalar) = node.as_scalar_mut() else {
            return Ok(());
        };
        // Strings without references are unchanged.
        if !scalar.is_string() || !scalar.text.contains('$') {
            return Ok(());
        }
        let expanded = expand(&scalar.text, &mut |name| {
            let Some((name, value)) = self.values.get_key_value(name) else {
                return Ok(None);
            };
            self.used.insert(name);
            let counted = self.run.budget.output(value.text.len() as u64);
            let counted = counted.map_err(|source| Error::Budget {
                dir: file.clone(),
                source,
            });
            counted.map(|()| Some(value))
        })?;
        *scalar = match expanded {
            Expanded::Alone(value) => value.scalar.clone(),
            Expanded::Text(text) => Scalar::string(text),
        };
        Ok(())
    }
}

/// quirk: a plain scalar that the build made is a string for vars, whatever its content.
fn type_text(node: &mut Node) {
    if !has_type(node)
        && let Some(scalar) = node.as_scalar_mut()
    {
        *scalar = Scalar::string(scalar.text.clone());
    }
}

fn tag(scalar: &Scalar) -> &'static str {
    match scalar.kind() {
        Tag::Null => "!!null",
        Tag::Bool => "!!bool",
        Tag::Int => "!!int",
        Tag::Float => "!!float",
        Tag::Str => "!!str",
        Tag::Timestamp => "!!timestamp",
        Tag::Binary => "!!binary",
        Tag::Other => "!",
    }
}
