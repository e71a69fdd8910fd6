//! Builds of small trees.

use std::time::Duration;

use serde_json::{Value as Json, json};
use tree::Mem;

use super::*;

const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: shop\ndata:\n  key: ";

/// Builds the files of the directory `app`.
fn build<T>(
    files: &[(&str, String)],
    change: &Json,
    variables: Result<&[(&str, &str)], &str>,
    work: impl FnOnce(&Build, &Job) -> T,
) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut spec =
        json!({ "interval": "5m", "prune": true, "sourceRef": { "kind": "GitRepository", "name": "a" } });
    for (field, value) in change.as_object().unwrap() {
        spec[field] = value.clone();
    }
    let variables = variables.map(|pairs| Variables {
        values: pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        secrets: Vec::new(),
    });
    let files = files.iter().map(|(path, text)| (*path, text.clone()));
    let build = Build {
        files: Arc::new(Mem::from_files(files).unwrap()),
        dir: TreePath::parse("app").unwrap(),
        spec: serde_json::from_value(spec).unwrap(),
        keys: None,
        variables: variables.map_err(str::to_owned),
        strict: true,
        limits: Limits::default(),
        fetcher: None,
        left_out: LeftOut::default(),
        runtime: runtime.handle().clone(),
    };
    let job = Job {
        namespace: "apps".to_owned(),
        timeout: Duration::from_secs(60),
        cancelled: Arc::default(),
        revoked: Default::default(),
    };
    work(&build, &job)
}

fn objects(text: &str, change: &Json, variables: Result<&[(&str, &str)], &str>) -> Result<Vec<Json>, String> {
    let files = [("app/a.yaml", text.to_owned())];
    let built = build(&files, change, variables, |build, job| build.objects(job));
    let built = built.map_err(|error| error.to_string())?;
    Ok(built.iter().map(Value::to_json).collect())
}

fn key(text: &str, change: &Json, variables: &[(&str, &str)]) -> Result<Json, String> {
    let built = objects(&format!("{MAP}{text}\n"), change, Ok(variables))?;
    Ok(built[0]["data"]["key"].clone())
}

#[test]
fn strategy_decides_if_objects_without_variables_are_substituted() {
    let always = json!({ "postBuild": { "substituteStrategy": "Always" } });
    let with_variables = json!({ "postBuild": { "substituteStrategy": "WithVariables" } });
    for change in [&with_variables, &json!({ "postBuild": {} }), &json!({})] {
        assert_eq!(key("${v:-d}", change, &[]).unwrap(), "${v:-d}", "{change}");
        assert_eq!(key("${v:-d}", change, &[("w", "x")]).unwrap(), "d", "{change}");
    }
    assert_eq!(key("${v:-d}", &always, &[]).unwrap(), "d");
    assert_eq!(key("$$(POD)", &always, &[]).unwrap(), "$(POD)");
    let error = key("${v}", &always, &[]).unwrap_err();
    let expected = "post build failed for 'ConfigMap.v1.[noGrp]/a': envsubst error: variable substitution failed: variable not \
                    set (strict mode): \"v\"";
    assert_eq!(error, expected);
}

#[test]
fn variables_that_are_unreadable_or_have_invalid_names_fail_with_the_first_object_that_has_any() {
    let post_build = json!({ "postBuild": {} });
    let plain = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: b\n  labels:\n    \
                 kustomize.toolkit.fluxcd.io/substitute: disabled\n";
    let text = format!("{plain}---\n{MAP}x\n");
    let why = "substitute from 'ConfigMap/vars' error: ConfigMap apps/vars not found";
    assert_eq!(
        objects(&text, &post_build, Err(why)).unwrap_err(),
        format!("post build failed for 'ConfigMap.v1.[noGrp]/a': {why}")
    );
    assert_eq!(objects(plain, &post_build, Err(why)).unwrap().len(), 1);
    assert_eq!(
        objects(&text, &post_build, Ok(&[("a-b", "c")])).unwrap_err(),
        "post build failed for 'ConfigMap.v1.[noGrp]/a': envsubst error: 'a-b' var name is invalid, must match \
         '^[_[:alpha:]][_[:alpha:][:digit:]]*$'"
    );
    assert_eq!(objects(plain, &post_build, Ok(&[("a-b", "c")])).unwrap().len(), 1);
}

#[test]
fn labels_that_are_set_after_the_build_are_not_substituted() {
    let change = json!({
        "commonMetadata": { "labels": { "team": "${v}", "app.kubernetes.io/name": "$$" } }, "postBuild": {},
    });
    let files = [("app/a.yaml", format!("{MAP}${{v}}\n"))];
    let variables = [("v", "x"), ("name", "y"), ("namespace", "z")];
    let built = build(&files, &change, Ok(&variables), |build, job| build.manifests(job));
    let mut object = built.unwrap().manifests.remove(0);
    let owner = apply::Owner::with_inventory(
        crate::FIELD_MANAGER,
        Vec::new(),
        apply::Labels::from([(crate::OWNER_LABELS.0.to_owned(), "${v}".to_owned())]),
    );
    owner.mark(&mut object);
    let object = object.to_json();
    assert_eq!(object["data"]["key"], "x");
    assert_eq!(
        object["metadata"]["labels"],
        json!({ "team": "${v}", "app.kubernetes.io/name": "$$", (crate::OWNER_LABELS.0): "${v}" })
    );
}

#[test]
fn digest_is_the_one_of_the_documents_without_later_labels() {
    let documents = format!("{MAP}\"1\"\n---\n{}\"2\"\n", MAP.replace("name: a", "name: b"));
    let files = [("app/a.yaml", documents)];
    let built = |change: &Json, files: &[(&str, String)]| {
        build(files, change, Ok(&[]), |build, job| build.manifests(job)).unwrap()
    };
    let plain = built(&json!({}), &files);
    let printed = "apiVersion: v1\ndata:\n  key: \"1\"\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: shop\n---\n\
                   apiVersion: v1\ndata:\n  key: \"2\"\nkind: ConfigMap\nmetadata:\n  name: b\n  namespace: shop\n";
    assert_eq!(
        plain.digest,
        format!("sha256:{}", hex::encode(Sha256::digest(printed)))
    );
    let labelled = built(&json!({ "commonMetadata": { "labels": { "a": "b" } } }), &files);
    assert_eq!(labelled.digest, plain.digest);
    let other = built(&json!({}), &[("app/a.yaml", format!("{MAP}x\n"))]);
    assert_ne!(other.digest, plain.digest);
}

#[test]
fn encrypted_secret_refuses_all_manifests_of_a_build_that_has_a_digest() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  namespace: shop\nsops:\n  age: []\n";
    let files = [("app/a.yaml", format!("{MAP}x\n---\n{secret}"))];
    let built = build(&files, &json!({}), Ok(&[]), |build, job| build.manifests(job)).unwrap();
    assert!(built.manifests.is_empty() && built.digest.starts_with("sha256:"));
    assert_eq!(
        built.refusal.as_deref(),
        Some(
            "Secret/shop/s is SOPS encrypted, configuring decryption is required for this secret to be reconciled"
        )
    );
}
