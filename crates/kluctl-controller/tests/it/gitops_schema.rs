//! The schema of KluctlDeployments of gitops.kluctl.io: each field has a test that shows its effect, or that it is refused by name.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

/// Tests of the schema that are next to the code.
const SPEC: &str = "src/kinds/gitops_kluctl_deployment/spec.rs";
const PROJECT: &str = "../engine/src/specs/gitops/project.rs";
/// Tests, with the fields of which they show the effect.
type Tests = &'static [(&'static str, &'static [&'static str])];

/// Files with tests.
const SHOWN: &[(&str, Tests)] = &[
    (
        PROJECT,
        &[(
            "invalid_specs_are_refused_in_the_words_of_the_original",
            &["source.secretRef", "source.credentials", "helmCredentials"],
        )],
    ),
    (
        SPEC,
        &[(
            "informational_fields_of_images_change_nothing",
            &[
                "images.deployedImage",
                "images.deployTags",
                "images.deploymentDir",
                "images.object.group",
                "images.object.version",
                "images.object.kind",
                "images.object.name",
                "images.object.namespace",
            ],
        )],
    ),
    (
        "tests/it/gitops_options.rs",
        &[
            (
                "target_arguments_and_inclusion_choose_what_is_deployed",
                &[
                    "target",
                    "targetNameOverride",
                    "args",
                    "includeTags",
                    "excludeTags",
                    "includeDeploymentDirs",
                    "excludeDeploymentDirs",
                    "dryRun",
                ],
            ),
            (
                "errors_and_waits_end_as_the_options_say",
                &["abortOnError", "noWait"],
            ),
            (
                "object_that_cannot_be_patched_is_recreated_on_request_only",
                &["replaceOnError", "forceReplaceOnError"],
            ),
            (
                "fixed_images_are_deployed_and_poked",
                &[
                    "deployMode",
                    "images.image",
                    "images.imageRegex",
                    "images.resultImage",
                    "images.namespace",
                    "images.deployment",
                    "images.container",
                ],
            ),
            (
                "objects_are_validated_at_their_own_interval",
                &["validate", "validateInterval"],
            ),
            (
                "fetch_ends_at_a_third_of_the_timeout_and_is_repeated_after_the_retry_interval",
                &["timeout", "retryInterval"],
            ),
            (
                "references_of_both_forms_of_a_git_source_select_the_commit",
                &[
                    "source.git.url",
                    "source.git.ref.branch",
                    "source.git.ref.tag",
                    "source.git.ref.commit",
                    "source.url",
                    "source.ref.branch",
                    "source.ref.tag",
                    "source.ref.commit",
                    "source.path",
                ],
            ),
            (
                "kubeconfig_of_a_secret_selects_the_cluster",
                &["kubeConfig.secretRef.name", "kubeConfig.secretRef.key"],
            ),
            (
                "field_of_another_manager_is_taken_over_by_force_only",
                &["forceApply"],
            ),
        ],
    ),
    (
        "tests/it/gitops_sources.rs",
        &[
            ("path_of_a_git_source_selects_the_project", &["source.git.path"]),
            (
                "path_of_an_oci_source_selects_the_project_and_its_commit_is_known",
                &[
                    "source.oci.url",
                    "source.oci.path",
                    "source.oci.ref.tag",
                    "source.oci.ref.digest",
                ],
            ),
            (
                "included_git_repositories_get_the_credentials_of_their_host_and_path",
                &[
                    "credentials.git.host",
                    "credentials.git.path",
                    "credentials.git.secretRef.name",
                ],
            ),
            (
                "oci_sources_get_the_credentials_of_their_registry_and_repository",
                &[
                    "credentials.oci.registry",
                    "credentials.oci.repository",
                    "credentials.oci.secretRef.name",
                ],
            ),
        ],
    ),
    (
        "tests/it/gitops_charts.rs",
        &[(
            "charts_of_helm_repositories_need_fitting_credentials",
            &[
                "credentials.helm.host",
                "credentials.helm.path",
                "credentials.helm.secretRef.name",
            ],
        )],
    ),
    (
        "tests/it/gitops_keeping.rs",
        &[
            (
                "encrypted_variables_need_the_key_of_a_secret",
                &["decryption.provider", "decryption.secretRef.name"],
            ),
            (
                "kms_key_is_looked_for_with_the_role_of_a_service_account",
                &["decryption.serviceAccount"],
            ),
        ],
    ),
    (
        "tests/it/gitops_idle.rs",
        &[
            ("pass_without_changes_asks_the_git_server_alone", &["interval"]),
            (
                "deployment_is_due_by_its_period_although_nothing_changes",
                &["deployInterval"],
            ),
        ],
    ),
    (
        "tests/it/gitops_deploying.rs",
        &[
            ("suspended_object_does_nothing_but_says_so", &["suspend"]),
            (
                "account_with_rights_in_its_namespace_prunes_and_deletes",
                &["serviceAccountName"],
            ),
            ("errors_have_the_words_of_the_original_and_heal", &["context"]),
            ("prune_and_delete_obey_their_fields", &["prune", "delete"]),
            (
                "manual_deployment_waits_for_approval",
                &["manual", "manualObjectsHash"],
            ),
        ],
    ),
    (
        "../cli/tests/it/gitops/local.rs",
        &[
            (
                "source_override_without_its_command_line_is_an_error_of_the_request",
                &["sourceOverrides.repoKey", "sourceOverrides.url"],
            ),
            (
                "local_directories_replace_git_repositories_for_one_request",
                &["sourceOverrides.isGroup"],
            ),
        ],
    ),
];

/// Adds the paths of all fields without fields of their own. Items of lists are part of the list.
fn add_leaves(path: &str, schema: &Value, leaves: &mut Vec<String>) {
    let schema = match schema.get("items") {
        Some(items) => items,
        None => schema,
    };
    let Some(fields) = schema["properties"].as_object() else {
        leaves.push(path.to_owned());
        return;
    };
    for (name, field) in fields {
        let dot = if path.is_empty() { "" } else { "." };
        add_leaves(&format!("{path}{dot}{name}"), field, leaves);
    }
}

/// Returns true if a source file has a test of this name.
fn has_test(text: &str, name: &str) -> bool {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let (plain, asynchronous) = (format!("fn {name}("), format!("async fn {name}("));
    lines.windows(2).any(|pair| {
        let is_test = pair[0].starts_with("#[test]") || pair[0].starts_with("#[tokio::test");
        is_test && (pair[1].starts_with(&plain) || pair[1].starts_with(&asynchronous))
    })
}

#[test]
fn each_field_of_the_schema_has_a_test_of_its_effect() -> Result<()> {
    let crd = serde_json::to_value(api::kluctl::gitops::definition())?;
    let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let mut leaves = Vec::new();
    add_leaves("", schema, &mut leaves);
    ensure!(leaves.len() > 70, "the walk ended early: {leaves:?}");
    let mut shown = BTreeMap::new();
    for (file, tests) in SHOWN {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        for (test, fields) in *tests {
            ensure!(has_test(&text, test), "{file} has no test {test}");
            for field in *fields {
                let name = field.rsplit('.').next().unwrap_or_default();
                // The command line writes the field for its flag.
                let is_used = text.contains(&format!("\"{name}\"")) || *field == "sourceOverrides.isGroup";
                ensure!(is_used, "{file} does not use {field}");
                ensure!(shown.insert(*field, *test).is_none(), "{field} is listed twice");
            }
        }
    }
    for leaf in &leaves {
        ensure!(
            shown.remove(leaf.as_str()).is_some(),
            "spec.{leaf} has no test: show its effect, or refuse it by name, and list the test here"
        );
    }
    ensure!(shown.is_empty(), "these are not in the schema: {shown:?}");
    Ok(())
}
