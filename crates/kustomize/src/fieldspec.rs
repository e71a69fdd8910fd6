//! Field specs: the fields of kinds that transformers change.

use std::{borrow::Cow, collections::HashMap};

use yaml::{
    Node,
    node::{Content, Tag},
};

use crate::{
    Error,
    error::{Context as _, Step},
    id::{Gvk, Id},
    lookup::{is_null, split_escaped},
    resource::Written,
};

/// A field of the kinds that its (possibly empty) group, version and kind select.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldSpec {
    pub(crate) gvk: Gvk,
    /// Map keys joined by `/`; `\/` is a slash in a key, `key[]` is a list.
    pub(crate) path: Cow<'static, str>,
    /// True if missing maps on the path, and the field, are created.
    pub(crate) create: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NameReference {
    pub(crate) target: Gvk,
    pub(crate) fields: Cow<'static, [FieldSpec]>,
}

impl FieldSpec {
    pub(crate) const fn row(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        path: &'static str,
        create: bool,
    ) -> Self {
        Self {
            gvk: Gvk::of(group, version, kind),
            path: Cow::Borrowed(path),
            create,
        }
    }
}

impl NameReference {
    pub(crate) const fn rows(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        fields: &'static [FieldSpec],
    ) -> Self {
        Self {
            target: Gvk::of(group, version, kind),
            fields: Cow::Borrowed(fields),
        }
    }
}

/// Adds a field spec to others, unless they contain it.
pub(crate) fn merge_one(specs: &mut Vec<FieldSpec>, new: FieldSpec) -> Result<(), Error> {
    let same = |old: &&FieldSpec| old.gvk.is_selected_by(&new.gvk) && old.path == new.path;
    match specs.iter().find(same) {
        Some(old) if old.create != new.create => {
            Err(Error::new(Step::Kustomization, "conflicting fieldspecs"))
        }
        Some(_) => Ok(()),
        None => {
            specs.push(new);
            Ok(())
        }
    }
}

/// Adds field specs to others, each as [`merge_one`] does.
pub(crate) fn merge_all(specs: &mut Vec<FieldSpec>, new: &[FieldSpec]) -> Result<(), Error> {
    new.iter().try_for_each(|spec| merge_one(specs, spec.clone()))
}

/// The initial content of a missing field that a field spec creates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Create {
    Nothing,
    /// An empty scalar, with the tag for a null in its position.
    Scalar(Option<Tag>),
    Map,
}

/// Calls `set` with every node of an object that a field spec names. Lists of the path are entered, and a null is replaced
/// by the created content.
pub(crate) fn visit(
    object: &mut Node,
    spec: &FieldSpec,
    create: Create,
    set: &mut dyn FnMut(&mut Node) -> Result<(), Error>,
) -> Result<(), Error> {
    if !Gvk::read(object).is_selected_by(&spec.gvk) {
        return Ok(());
    }
    visit_selected(object, spec, create, set)
}

/// Visits the fields as [`visit`] does, in an object that is known to be of the field spec's kind.
pub(crate) fn visit_selected(
    object: &mut Node,
    spec: &FieldSpec,
    create: Create,
    set: &mut dyn FnMut(&mut Node) -> Result<(), Error>,
) -> Result<(), Error> {
    visit_shared(object, spec, create, &mut |node, written| {
        written.write(node, |node| set(node))
    })
}

/// Visits the fields as [`visit_selected`] does, for changes below the nodes: `set` reports its writes to scalars there.
pub(crate) fn visit_shared(
    object: &mut Node,
    spec: &FieldSpec,
    create: Create,
    set: &mut Set<'_>,
) -> Result<(), Error> {
    let create = if spec.create { create } else { Create::Nothing };
    visit_path(object, &Path::of(spec), create, set)
}

pub(crate) type Set<'s> = dyn FnMut(&mut Node, &mut Written) -> Result<(), Error> + 's;

/// The parsed path of a field spec.
#[derive(Debug)]
pub(crate) struct Path<'a> {
    pub(crate) text: &'a str,
    elements: Vec<Cow<'a, str>>,
}

impl<'a> Path<'a> {
    pub(crate) fn of(spec: &'a FieldSpec) -> Self {
        Self {
            text: &spec.path,
            elements: split_escaped(&spec.path, '/'),
        }
    }
}

/// Visits the fields as [`visit_shared`] does, for one path of an object of any kind.
pub(crate) fn visit_path(
    object: &mut Node,
    path: &Path<'_>,
    create: Create,
    set: &mut Set<'_>,
) -> Result<(), Error> {
    let mut written = Written::default();
    let walked = walk(object, &path.elements, create, &mut |node| {
        set(node, &mut written)
    });
    written.spread(object);
    walked.context(|| format!("considering field '{}' of object {}", path.text, Id::read(object)))
}

/// Rows by kind, each kind's computed once.
pub(crate) struct ByKind<'a, T> {
    rows: Vec<(&'a Gvk, T)>,
    found: HashMap<Gvk, Vec<usize>>,
}

impl<'a, T> ByKind<'a, T> {
    pub(crate) fn new(rows: impl Iterator<Item = (&'a Gvk, T)>) -> Self {
        Self {
            rows: rows.collect(),
            found: HashMap::new(),
        }
    }

    /// Returns the rows for a kind, in their order.
    pub(crate) fn of(&mut self, kind: &Gvk) -> impl Iterator<Item = &T> {
        if !self.found.contains_key(kind) {
            let rows = self.rows.iter().enumerate();
            let found = rows.filter(|(_, (selector, _))| kind.is_selected_by(selector));
            let found = found.map(|(index, _)| index).collect();
            self.found.insert(kind.clone(), found);
        }
        let found = self.found.get(kind).into_iter().flatten();
        found.filter_map(|index| self.rows.get(*index).map(|(_, row)| row))
    }
}

fn walk(
    node: &mut Node,
    path: &[Cow<'_, str>],
    create: Create,
    set: &mut dyn FnMut(&mut Node) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some((first, rest)) = path.split_first() else {
        return set(node);
    };
    if is_null(node) {
        return Ok(());
    }
    match &mut node.content {
        Content::Seq(items) => items
            .iter_mut()
            .try_for_each(|item| walk(item, path, create, set))
            .context(|| format!("visit traversal on path: [{}]", path.join(" "))),
        Content::Map(_) => walk_map(node, first, rest, create, set),
        Content::Scalar(_) => Err(Error::new(Step::Transformer, "expected sequence or mapping node")),
    }
}

fn walk_map(
    node: &mut Node,
    first: &str,
    rest: &[Cow<'_, str>],
    create: Create,
    set: &mut dyn FnMut(&mut Node) -> Result<(), Error>,
) -> Result<(), Error> {
    let (name, is_list) = match first.strip_suffix("[]") {
        Some(name) => (name, true),
        None => (first, false),
    };
    if name.is_empty() {
        let problem = "cannot set or create an empty field name";
        return Err(Error::new(Step::Transformer, problem));
    }
    let made = match create {
        Create::Nothing => None,
        _ if is_list => None,
        Create::Scalar(_) | Create::Map if !rest.is_empty() => Some(Node::map()),
        Create::Map => Some(Node::map()),
        // Without a tag it would be read as null.
        Create::Scalar(_) => Some(Node::plain("")),
    };
    if node.get(name).is_none() {
        let Some(made) = made.clone() else {
            return Ok(());
        };
        node.set(name, made);
    }
    let Some(field) = node.get_mut(name) else {
        return Ok(());
    };
    if is_null(field) {
        if is_list {
            field.content = Content::Seq(Vec::new());
        } else if let Some(made) = made {
            field.content = tagged(made, create).content;
        }
    }
    if rest.is_empty() {
        return set(field);
    }
    walk(field, rest, create, set)
}

fn tagged(mut node: Node, create: Create) -> Node {
    if let (Create::Scalar(tag), Content::Scalar(scalar)) = (create, &mut node.content) {
        scalar.tag = tag;
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visited(object: &str, spec: &FieldSpec, create: Create) -> String {
        let budget = tree::Budget::default();
        let mut object = yaml::read::node(object, &budget).unwrap().unwrap();
        let mut set = |node: &mut Node| {
            *node = Node::string("X");
            Ok(())
        };
        match visit(&mut object, spec, create, &mut set) {
            Ok(()) => yaml::print::goyaml(&object.to_value().unwrap()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn fields_are_found_in_lists_and_created_on_demand() {
        let spec = |path, create| FieldSpec::row("", "v1", "A", path, create);
        let scalar = Create::Scalar(None);
        let object = "{apiVersion: v1, kind: A, l: [{a: 1}, {b: 2}], z: null}";
        let changed = |path, create| visited(object, &spec(path, create), scalar);
        assert!(changed("l/a", false).contains("- a: X\n- b: 2\n"));
        assert!(changed("l/a", true).contains("- a: X\n- a: X\n  b: 2\n"));
        assert!(changed("z/m", true).contains("z:\n  m: X\n"));
        assert!(changed("z/m", false).contains("z: null\n"));
        assert!(changed("o[]/m", true).ends_with("z: null\n"));
        assert!(changed("kind/m", true).ends_with("expected sequence or mapping node"));
        let other = FieldSpec::row("", "", "B", "kind", true);
        assert!(visited(object, &other, scalar).contains("kind: A\n"));
    }

    #[test]
    fn rows_are_picked_by_kind_in_their_order() {
        let kinds = [
            Gvk::of("", "", "A"),
            Gvk::of("", "", ""),
            Gvk::of("g", "", "B"),
            Gvk::of("", "v1", "A"),
        ];
        let mut rows = ByKind::new(kinds.iter().zip(0..));
        let mut of = |kind| rows.of(&kind).copied().collect::<Vec<i32>>();
        assert_eq!(of(Gvk::of("", "v1", "A")), [0, 1, 3]);
        assert_eq!(of(Gvk::of("g", "v2", "B")), [1, 2]);
        assert_eq!(of(Gvk::of("", "v1", "A")), [0, 1, 3]);
    }
}
