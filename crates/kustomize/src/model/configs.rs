//! The shapes of the configurations of built-in generators and transformers: objects of these kinds in `generators`,
//! `transformers` and `validators`.

use super::{
    shape::{Field, Struct, Type},
    shapes::{
        CONFIG_MAP_ARGS, FIELD_SPEC, IMAGE, OBJECT_META, REPLACEMENT_FIELD, REPLICA, SECRET_ARGS, SELECTOR,
        TEXT_MAP, field, flag, list, text,
    },
};

const fn plugin(
    name: &'static str,
    embedded: &'static [&'static Struct],
    fields: &'static [Field],
) -> Struct {
    Struct {
        package: "builtins",
        name,
        embedded,
        fields,
    }
}

const SPEC: Type = Type::Struct(&FIELD_SPEC);
const FIELD_SPECS: Field = list("fieldSpecs", &SPEC);
const METADATA: Field = field("metadata", Type::Struct(&OBJECT_META));

pub(crate) static PREFIX: Struct = plugin("PrefixTransformerPlugin", &[], &[text("prefix"), FIELD_SPECS]);

pub(crate) static SUFFIX: Struct = plugin("SuffixTransformerPlugin", &[], &[text("suffix"), FIELD_SPECS]);

pub(crate) static NAMESPACE: Struct = plugin(
    "NamespaceTransformerPlugin",
    &[],
    &[
        METADATA,
        FIELD_SPECS,
        flag("unsetOnly"),
        field(
            "setRoleBindingSubjects",
            Type::Text("namespace.RoleBindingSubjectMode"),
        ),
    ],
);

pub(crate) static LABELS: Struct = plugin(
    "LabelTransformerPlugin",
    &[],
    &[field("labels", TEXT_MAP), FIELD_SPECS],
);

pub(crate) static ANNOTATIONS: Struct = plugin(
    "AnnotationsTransformerPlugin",
    &[],
    &[field("annotations", TEXT_MAP), FIELD_SPECS],
);

pub(crate) static IMAGES: Struct = plugin(
    "ImageTagTransformerPlugin",
    &[],
    &[field("imageTag", Type::Struct(&IMAGE)), FIELD_SPECS],
);

pub(crate) static REPLICAS: Struct = plugin(
    "ReplicaCountTransformerPlugin",
    &[],
    &[field("replica", Type::Struct(&REPLICA)), FIELD_SPECS],
);

/// With the file of its targets.
pub(crate) static VALUE_ADD: Struct = plugin(
    "ValueAddTransformerPlugin",
    &[],
    &[
        text("value"),
        list("targets", &Type::Struct(&VALUE_ADD_TARGET)),
        text("targetFilePath"),
    ],
);

static VALUE_ADD_TARGET: Struct = plugin(
    "ValueAddTarget",
    &[],
    &[
        field("selector", Type::Optional(&SELECTOR)),
        text("fieldPath"),
        field("filePathPosition", Type::Int("int")),
    ],
);

pub(crate) static STRATEGIC_MERGE: Struct = plugin(
    "PatchStrategicMergeTransformerPlugin",
    &[],
    &[
        list("paths", &Type::Text("types.PatchStrategicMerge")),
        text("patches"),
    ],
);

pub(crate) static JSON6902: Struct = plugin(
    "PatchJson6902TransformerPlugin",
    &[],
    &[
        field("target", Type::Optional(&SELECTOR)),
        text("path"),
        text("jsonOp"),
    ],
);

pub(crate) static REPLACEMENTS: Struct = plugin(
    "ReplacementTransformerPlugin",
    &[],
    &[list("replacements", &Type::Struct(&REPLACEMENT_FIELD))],
);

pub(crate) static CONFIG_MAP: Struct = plugin("ConfigMapGeneratorPlugin", &[&CONFIG_MAP_ARGS], &[METADATA]);

pub(crate) static SECRET: Struct = plugin("SecretGeneratorPlugin", &[&SECRET_ARGS], &[METADATA]);

pub(crate) static IAM_POLICY: Struct = plugin(
    "IAMPolicyGeneratorPlugin",
    &[],
    &[
        text("cloud"),
        field("kubernetesService", Type::Struct(&SERVICE)),
        field("serviceAccount", Type::Struct(&ACCOUNT)),
    ],
);

static SERVICE: Struct = plugin("KubernetesService", &[], &[text("name"), text("namespace")]);
static ACCOUNT: Struct = plugin("ServiceAccount", &[], &[text("name"), text("projectId")]);
