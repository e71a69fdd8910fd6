//! The shapes of kustomizations and of the files that they name: every field that kustomize knows, with its type.

use super::shape::{Field, Struct, Type};
use crate::Profile;

const TEXT: Type = Type::Text("string");
pub(super) const TEXT_MAP: Type = Type::MapOf(None, &TEXT);
const TEXTS: Type = Type::List(None, &TEXT);

const fn types(name: &'static str, embedded: &'static [&'static Struct], fields: &'static [Field]) -> Struct {
    Struct {
        package: "types",
        name,
        embedded,
        fields,
    }
}

pub(super) const fn field(name: &'static str, of: Type) -> Field {
    let since = Profile::V5_8_1;
    Field { name, of, since }
}

pub(super) const fn text(name: &'static str) -> Field {
    field(name, TEXT)
}

pub(super) const fn texts(name: &'static str) -> Field {
    field(name, TEXTS)
}

pub(super) const fn flag(name: &'static str) -> Field {
    field(name, Type::Bool)
}

pub(super) const fn list(name: &'static str, of: &'static Type) -> Field {
    field(name, Type::List(None, of))
}

pub(crate) static KUSTOMIZATION: Struct = types(
    "Kustomization",
    &[&types("TypeMeta", &[], &[text("kind"), text("apiVersion")])],
    &[
        field("metadata", Type::Optional(&OBJECT_META)),
        field("openapi", TEXT_MAP),
        text("namePrefix"),
        text("nameSuffix"),
        text("namespace"),
        field("commonLabels", TEXT_MAP),
        list("labels", &Type::Struct(&LABEL)),
        field("commonAnnotations", TEXT_MAP),
        list("patchesStrategicMerge", &Type::Text("types.PatchStrategicMerge")),
        list("patchesJson6902", &Type::Struct(&PATCH)),
        list("patches", &Type::Struct(&PATCH)),
        list("images", &Type::Struct(&IMAGE)),
        list("imageTags", &Type::Struct(&IMAGE)),
        list("replacements", &Type::Struct(&REPLACEMENT_FIELD)),
        list("replicas", &Type::Struct(&REPLICA)),
        list("vars", &Type::Struct(&VAR)),
        field("sortOptions", Type::Optional(&SORT_OPTIONS)),
        texts("resources"),
        texts("components"),
        texts("crds"),
        texts("bases"),
        list("configMapGenerator", &Type::Struct(&CONFIG_MAP_ARGS)),
        list("secretGenerator", &Type::Struct(&SECRET_ARGS)),
        field("helmGlobals", Type::Optional(&HELM_GLOBALS)),
        list("helmCharts", &Type::Struct(&HELM_CHART)),
        list("helmChartInflationGenerator", &Type::Struct(&HELM_CHART_ARGS)),
        field("generatorOptions", Type::Optional(&GENERATOR_OPTIONS)),
        texts("configurations"),
        texts("generators"),
        texts("transformers"),
        texts("validators"),
        texts("buildMetadata"),
    ],
);

/// The fields of other objects' metadata that builds read.
pub(crate) static OBJECT_META: Struct = types(
    "ObjectMeta",
    &[],
    &[
        text("name"),
        text("namespace"),
        field("labels", TEXT_MAP),
        field("annotations", TEXT_MAP),
    ],
);

pub(crate) static GVK: Struct = Struct {
    package: "resid",
    name: "Gvk",
    embedded: &[],
    fields: &[text("group"), text("version"), text("kind")],
};

static RES_ID: Struct = Struct {
    package: "resid",
    name: "ResId",
    embedded: &[&GVK],
    fields: &[text("name"), text("namespace")],
};

pub(crate) static FIELD_SPEC: Struct = types("FieldSpec", &[&GVK], &[text("path"), flag("create")]);

pub(crate) static LABEL: Struct = types(
    "Label",
    &[],
    &[
        field("pairs", TEXT_MAP),
        flag("includeSelectors"),
        flag("includeTemplates"),
        Field {
            name: "includeVolumeClaimTemplates",
            of: Type::Bool,
            since: Profile::V5_8_3,
        },
        list("fields", &Type::Struct(&FIELD_SPEC)),
    ],
);

pub(crate) static SELECTOR: Struct = types(
    "Selector",
    &[&RES_ID],
    &[text("annotationSelector"), text("labelSelector")],
);

pub(crate) static PATCH: Struct = types(
    "Patch",
    &[],
    &[
        text("path"),
        text("patch"),
        field("target", Type::Optional(&SELECTOR)),
        field("options", Type::Optional(&PATCH_ARGS)),
    ],
);

/// The `options` of a patch.
pub(crate) static PATCH_ARGS: Struct = types(
    "PatchArgs",
    &[],
    &[flag("allowNameChange"), flag("allowKindChange")],
);

pub(crate) static IMAGE: Struct = types(
    "Image",
    &[],
    &[
        text("name"),
        text("newName"),
        text("tagSuffix"),
        text("newTag"),
        text("digest"),
    ],
);

pub(crate) static REPLICA: Struct = types(
    "Replica",
    &[],
    &[text("name"), field("count", Type::Int("int64"))],
);

pub(crate) static REPLACEMENT_FIELD: Struct = types("ReplacementField", &[&REPLACEMENT], &[text("path")]);

pub(crate) static REPLACEMENT: Struct = types(
    "Replacement",
    &[],
    &[
        field("source", Type::Optional(&SOURCE_SELECTOR)),
        list("targets", &Type::Optional(&TARGET_SELECTOR)),
        text("sourceValue"),
    ],
);

static SOURCE_SELECTOR: Struct = types(
    "SourceSelector",
    &[&RES_ID],
    &[
        text("fieldPath"),
        field("options", Type::Optional(&FIELD_OPTIONS)),
    ],
);

static TARGET_SELECTOR: Struct = types(
    "TargetSelector",
    &[],
    &[
        field("select", Type::Optional(&SELECTOR)),
        list("reject", &Type::Optional(&SELECTOR)),
        texts("fieldPaths"),
        field("options", Type::Optional(&FIELD_OPTIONS)),
    ],
);

static FIELD_OPTIONS: Struct = types(
    "FieldOptions",
    &[],
    &[
        text("delimiter"),
        field("index", Type::Int("int")),
        text("encoding"),
        flag("create"),
    ],
);

static VAR: Struct = types(
    "Var",
    &[],
    &[
        text("name"),
        field("objref", Type::Struct(&TARGET)),
        field("fieldref", Type::Struct(&FIELD_SELECTOR)),
    ],
);

static TARGET: Struct = types(
    "Target",
    &[&GVK],
    &[text("apiVersion"), text("name"), text("namespace")],
);

static FIELD_SELECTOR: Struct = types("FieldSelector", &[], &[text("fieldPath")]);

pub(crate) static SORT_OPTIONS: Struct = types(
    "SortOptions",
    &[],
    &[
        field("order", Type::Text("types.SortOrder")),
        field("legacySortOptions", Type::Optional(&LEGACY_SORT_OPTIONS)),
    ],
);

static LEGACY_SORT_OPTIONS: Struct = types(
    "LegacySortOptions",
    &[],
    &[texts("orderFirst"), texts("orderLast")],
);

static KV_PAIR_SOURCES: Struct = types(
    "KvPairSources",
    &[],
    &[texts("literals"), texts("files"), texts("envs"), text("env")],
);

static GENERATOR_ARGS: Struct = types(
    "GeneratorArgs",
    &[&KV_PAIR_SOURCES],
    &[
        text("namespace"),
        text("name"),
        text("behavior"),
        field("options", Type::Optional(&GENERATOR_OPTIONS)),
    ],
);

pub(crate) static CONFIG_MAP_ARGS: Struct = types("ConfigMapArgs", &[&GENERATOR_ARGS], &[]);

pub(crate) static SECRET_ARGS: Struct = types("SecretArgs", &[&GENERATOR_ARGS], &[text("type")]);

pub(crate) static GENERATOR_OPTIONS: Struct = types(
    "GeneratorOptions",
    &[],
    &[
        field("labels", TEXT_MAP),
        field("annotations", TEXT_MAP),
        flag("disableNameSuffixHash"),
        flag("immutable"),
    ],
);

pub(crate) static HELM_GLOBALS: Struct = types("HelmGlobals", &[], &[text("chartHome"), text("configHome")]);

pub(crate) static HELM_CHART: Struct = types(
    "HelmChart",
    &[],
    &[
        text("name"),
        text("version"),
        text("repo"),
        text("releaseName"),
        text("namespace"),
        texts("additionalValuesFiles"),
        text("valuesFile"),
        field("valuesInline", Type::AnyMap),
        text("valuesMerge"),
        flag("includeCRDs"),
        flag("skipHooks"),
        texts("apiVersions"),
        text("kubeVersion"),
        text("nameTemplate"),
        flag("skipTests"),
        flag("debug"),
        flag("devel"),
    ],
);

pub(crate) static HELM_CHART_ARGS: Struct = types(
    "HelmChartArgs",
    &[],
    &[
        text("chartName"),
        text("chartVersion"),
        text("chartRepoUrl"),
        text("chartHome"),
        text("chartRepoName"),
        text("helmBin"),
        text("helmHome"),
        text("values"),
        field("valuesLocal", Type::AnyMap),
        text("valuesMerge"),
        text("releaseName"),
        text("releaseNamespace"),
        texts("extraArgs"),
    ],
);

pub(crate) static TRANSFORMER_CONFIG: Struct = Struct {
    package: "builtinconfig",
    name: "TransformerConfig",
    embedded: &[],
    fields: &[
        field("namePrefix", FIELD_SPECS),
        field("nameSuffix", FIELD_SPECS),
        field("namespace", FIELD_SPECS),
        field("commonLabels", FIELD_SPECS),
        field("labels", FIELD_SPECS),
        field("templateLabels", FIELD_SPECS),
        field("commonAnnotations", FIELD_SPECS),
        field(
            "nameReference",
            Type::List(
                Some("builtinconfig.nbrSlice"),
                &Type::Struct(&NAME_BACK_REFERENCES),
            ),
        ),
        field("varReference", FIELD_SPECS),
        field("images", FIELD_SPECS),
        field("replicas", FIELD_SPECS),
    ],
};

/// A list of field specs that has a type of its own.
pub(crate) const FIELD_SPECS: Type = Type::List(Some("types.FsSlice"), &Type::Struct(&FIELD_SPEC));

static NAME_BACK_REFERENCES: Struct = Struct {
    package: "builtinconfig",
    name: "NameBackReferences",
    embedded: &[&GVK],
    fields: &[field("fieldSpecs", FIELD_SPECS)],
};

/// A file of `crds`: definitions by their names.
pub(crate) const DEFINITIONS: Type = Type::MapOf(
    Some("accumulator.nameToApiMap"),
    &Type::Struct(&OPEN_API_DEFINITION),
);

static OPEN_API_DEFINITION: Struct = Struct {
    package: "accumulator",
    name: "OpenAPIDefinition",
    embedded: &[],
    fields: &[field("Schema", Type::AnyMap), texts("Dependencies")],
};
