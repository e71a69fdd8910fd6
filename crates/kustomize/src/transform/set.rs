//! Sets scalars in nodes, with the tags and quotes that kustomize leaves behind.

use yaml::{
    Node, Position,
    node::{Content, Scalar, Tag},
};

use crate::{
    Error,
    fieldspec::{Create, FieldSpec, visit_selected},
    lookup,
    resource::Resource,
};

/// Calls `set` with the nodes of an object that a field spec names, if it is of its kind.
pub(crate) fn visit(
    resource: &mut Resource,
    spec: &FieldSpec,
    create: Create,
    set: &mut dyn FnMut(&mut Node) -> Result<(), Error>,
) -> Result<(), Error> {
    if !resource.gvk().is_selected_by(&spec.gvk) {
        return Ok(());
    }
    visit_selected(resource.node_mut(), spec, create, set)
}

/// Sets the content of a scalar, which stays as plain or quoted as it was. Without a tag, a plain scalar is resolved from
/// its content, and loses the type that was read.
///
/// Quotes win over the tag of a number: `"2"` is a string however it is set.
pub(crate) fn scalar(node: &mut Node, text: &str, tag: Option<Tag>) -> Result<(), Error> {
    let Content::Scalar(old) = &node.content else {
        return Err(wrong_kind("ScalarNode", node));
    };
    let (plain, share, in_flow) = (old.plain, old.share, old.in_flow);
    if plain && tag.is_none() {
        node.position = Position::default();
    }
    node.content = Content::Scalar(Scalar {
        text: text.into(),
        tag: tag.filter(|tag| plain || *tag == Tag::Str),
        plain,
        share,
        in_flow,
    });
    Ok(())
}

/// Makes the error of a node of the wrong kind, without its content, which may be secret.
pub(crate) fn wrong_kind(expected: &str, node: &Node) -> Error {
    lookup::wrong_kind(expected, node.kind_name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(old: &str, text: &str, tag: Option<Tag>) -> String {
        let budget = tree::Budget::default();
        let mut node = yaml::read::node(old, &budget).unwrap().unwrap();
        match scalar(&mut node, text, tag) {
            Ok(()) => yaml::print::goyaml(&node.to_value().unwrap()),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn scalars_keep_their_quotes() {
        assert_eq!(set("a", "077", None), "63\n");
        assert_eq!(set("'a'", "077", None), "\"077\"\n");
        assert_eq!(set("a", "77", Some(Tag::Str)), "\"77\"\n");
        assert_eq!(set("1", "3", Some(Tag::Int)), "3\n");
        assert_eq!(set("'1'", "3", Some(Tag::Int)), "\"3\"\n");
        assert_eq!(
            set("[a]", "b", None),
            "wrong node kind: expected ScalarNode but got SequenceNode"
        );
    }
}
