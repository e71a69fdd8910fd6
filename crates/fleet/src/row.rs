//! The rows of tables of objects: the columns and words of the original's command line.

use crate::{Kind, Object, Suspension, shorten_hashes};

/// The columns of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Columns {
    pub namespace: bool,
    /// The group, for kinds that share a name.
    pub group: bool,
    /// Prefixes names with their kind, for tables of several kinds in one output.
    pub kind_prefix: bool,
    pub source: bool,
    /// The note on suspended objects.
    pub suspension: bool,
    pub age: bool,
}

/// A row of a table, without cells that depend on the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    namespace: String,
    name: String,
    group: &'static str,
    kind: &'static str,
    source: String,
    cells: Vec<String>,
    suspension: String,
    age: String,
}

impl Columns {
    /// Returns the names of the columns for a kind.
    #[must_use]
    pub fn head(self, of: &Kind) -> Vec<&'static str> {
        let mut head = Vec::new();
        if self.namespace {
            head.push("Namespace");
        }
        head.push("Name");
        if self.group {
            head.push("Group");
        }
        if self.shows_source(of) {
            head.push("Source");
        }
        head.extend(own_columns(of));
        if self.suspension {
            head.push("Suspension");
        }
        if self.age {
            head.push("Age");
        }
        head
    }

    /// Returns the cells of a row in the columns of its kind.
    #[must_use]
    pub fn cells(self, of: &Kind, row: Row) -> Vec<String> {
        let mut cells = Vec::new();
        if self.namespace {
            cells.push(row.namespace);
        }
        cells.push(match self.kind_prefix {
            true => format!("{}/{}", row.kind.to_lowercase(), row.name),
            false => row.name,
        });
        if self.group {
            cells.push(row.group.to_owned());
        }
        if self.shows_source(of) {
            cells.push(row.source);
        }
        cells.extend(row.cells);
        if self.suspension {
            cells.push(row.suspension);
        }
        if self.age {
            cells.push(row.age);
        }
        cells
    }

    fn shows_source(self, of: &Kind) -> bool {
        self.source && Self::has_source(of)
    }

    /// Returns true for kinds that deploy a source.
    #[must_use]
    pub fn has_source(of: &Kind) -> bool {
        matches!(of.kind, "Kustomization" | "HelmRelease" | "KluctlDeployment")
    }
}

/// Returns the columns between the name and the age.
fn own_columns(of: &Kind) -> &'static [&'static str] {
    match of.kind {
        "ExternalArtifact" => &["Revision", "Source", "Ready", "Message"],
        "Alert" | "Receiver" | "ArtifactGenerator" => &["Suspended", "Ready", "Message"],
        "Provider" => &["Ready", "Message"],
        "ImageRepository" => &["Last scan", "Suspended", "Ready", "Message"],
        "ImagePolicy" => &["Image", "Tag", "Ready", "Message"],
        "ImageUpdateAutomation" => &["Last run", "Suspended", "Ready", "Message"],
        _ => &["Revision", "Suspended", "Ready", "Message"],
    }
}

impl Row {
    /// Makes the row of an object, whose age is passed in.
    #[must_use]
    pub fn new(of: &'static Kind, object: Object, age: String) -> Self {
        let cells = own_cells(of, &object);
        let source = object
            .source()
            .map(|source| format!("{}/{}/{}", source.kind, source.namespace, source.name));
        let source = source.unwrap_or_else(|| object.url().to_owned());
        let suspension = Suspension::of(&object).unwrap_or_default();
        Self {
            namespace: object.metadata.namespace,
            name: object.metadata.name,
            group: of.group,
            kind: of.kind,
            source,
            cells,
            suspension: suspension.to_string(),
            age,
        }
    }

    /// Sets the message of an object that is gone.
    #[must_use]
    pub fn deleted(mut self) -> Self {
        if let Some(message) = self.cells.last_mut() {
            "deleted".clone_into(message);
        }
        self
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns `kind.group/name`, which kubectl accepts as the name of an object.
    #[must_use]
    pub fn resource_name(&self) -> String {
        format!("{}.{}/{}", self.kind.to_lowercase(), self.group, self.name)
    }
}

fn own_cells(of: &Kind, object: &Object) -> Vec<String> {
    let (ready, message) = ready_and_message(of, object);
    let first: &[String] = match of.kind {
        "ExternalArtifact" => {
            let source = object
                .source()
                .map(|source| format!("{}/{}/{}", source.kind, source.namespace, source.name));
            &[revision(of, object), source.unwrap_or_default()]
        }
        "Alert" | "Receiver" => &[suspended(object.spec.suspend)],
        "ArtifactGenerator" => &[suspended(object.is_disabled())],
        "Provider" => &[],
        "ImageRepository" => {
            let scan = object.status.last_scan_result.as_ref();
            let scan = scan.map(|scan| scan.scan_time.clone());
            &[scan.unwrap_or_default(), suspended(object.spec.suspend)]
        }
        "ImagePolicy" => &image(object),
        "ImageUpdateAutomation" => {
            let run = object.status.last_automation_run_time.clone();
            &[run, suspended(object.spec.suspend)]
        }
        _ => &[revision(of, object), suspended(object.spec.suspend)],
    };
    first.iter().cloned().chain([ready, message]).collect()
}

fn suspended(is_suspended: bool) -> String {
    if is_suspended { "True" } else { "False" }.to_owned()
}

fn ready_and_message(of: &Kind, object: &Object) -> (String, String) {
    if object.is_static(of) {
        let name = if of.kind == "HelmRepository" {
            "Helm repository"
        } else {
            of.kind
        };
        return ("True".to_owned(), format!("{name} is Ready"));
    }
    let Some(ready) = object.ready() else {
        return ("False".to_owned(), "waiting to be reconciled".to_owned());
    };
    if !of.features.has_status && ready.status == "True" {
        let message = match object.undelivered() {
            Some(delivered) => format!("not delivered: {}", delivered.message),
            None => format!("{} is Ready", of.kind),
        };
        return (ready.status.clone(), message);
    }
    let keeps_hashes = matches!(
        of.kind,
        "HelmRelease" | "Receiver" | "ImageRepository" | "ImagePolicy" | "ImageUpdateAutomation"
    );
    let message = match keeps_hashes {
        true => ready.message.clone(),
        false => shorten_hashes(&ready.message),
    };
    (ready.status.clone(), message)
}

fn revision(of: &Kind, object: &Object) -> String {
    let status = &object.status;
    let artifact = || {
        status
            .artifact
            .as_ref()
            .map(|artifact| artifact.revision.as_str())
    };
    match of.kind {
        "Kustomization" => shorten_hashes(&status.last_applied_revision),
        "HelmRelease" => match status.history.first() {
            Some(release) if !release.chart_version.is_empty() => release.chart_version.clone(),
            _ => status.last_attempted_revision.clone(),
        },
        "KluctlDeployment" => {
            let commit = shorten_hashes(&status.observed_commit);
            let attempted = shorten_hashes(&status.last_attempted_revision);
            if attempted.is_empty() { commit } else { attempted }
        }
        "HelmChart" => artifact().unwrap_or_default().to_owned(),
        _ => shorten_hashes(artifact().unwrap_or_default()),
    }
}

/// Returns image and tag of a policy; old versions of the kind have them in one string.
fn image(object: &Object) -> [String; 2] {
    let status = &object.status;
    match &status.latest_ref {
        Some(image) => [image.name.clone(), image.tag.clone()],
        None => match status.latest_image.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => [name.to_owned(), tag.to_owned()],
            _ => [status.latest_image.clone(), String::new()],
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{Table, kind};

    fn table(of: &'static Kind, columns: Columns, object: Value) -> Vec<(String, String)> {
        let object = serde_json::from_value(object).unwrap();
        let cells = columns.cells(of, Row::new(of, object, "5m".to_owned()));
        let head = columns.head(of);
        assert_eq!(head.len(), cells.len());
        let names = head.into_iter().map(str::to_uppercase);
        names.zip(cells).collect()
    }

    fn line(cells: &[(String, String)]) -> String {
        let cells = cells.iter().map(|(name, cell)| format!("{name}={cell}"));
        cells.collect::<Vec<_>>().join(" ")
    }

    fn object(spec: &Value, status: &Value) -> Value {
        json!({"metadata": {"name": "a", "namespace": "n"}, "spec": spec, "status": status})
    }

    const REVISION: &str = "main@sha1:696f056df216eea4f9401adbee0ff744d4df390f";

    #[test]
    fn each_kind_has_the_columns_of_the_original() {
        let ready = json!([{"type": "Ready", "status": "True", "message": format!("Got {REVISION}")}]);
        let source = json!({"sourceRef": {"kind": "GitRepository", "name": "s"}, "suspend": true});
        for (of, spec, status, expected) in [
            (
                &kind::GIT_REPOSITORY,
                json!({}),
                json!({"artifact": {"revision": REVISION}, "conditions": ready}),
                "NAME=a REVISION=main@sha1:696f056d SUSPENDED=False READY=True MESSAGE=Got main@sha1:696f056d",
            ),
            (
                &kind::KUSTOMIZATION,
                source.clone(),
                json!({"lastAppliedRevision": REVISION}),
                "NAME=a REVISION=main@sha1:696f056d SUSPENDED=True READY=False MESSAGE=waiting to be reconciled",
            ),
            (
                &kind::HELM_RELEASE,
                json!({}),
                json!({"history": [{"chartVersion": "1.2.3"}], "lastAttemptedRevision": "1.2.4"}),
                "NAME=a REVISION=1.2.3 SUSPENDED=False READY=False MESSAGE=waiting to be reconciled",
            ),
            (
                &kind::EXTERNAL_ARTIFACT,
                source,
                json!({}),
                "NAME=a REVISION= SOURCE=GitRepository/n/s READY=False MESSAGE=waiting to be reconciled",
            ),
            (
                &kind::HELM_REPOSITORY,
                json!({"type": "oci", "url": "oci://x"}),
                json!({}),
                "NAME=a REVISION= SUSPENDED=False READY=True MESSAGE=Helm repository is Ready",
            ),
            (
                &kind::PROVIDER,
                json!({}),
                json!({}),
                "NAME=a READY=True MESSAGE=Provider is Ready",
            ),
            (
                &kind::ALERT,
                json!({"suspend": true}),
                json!({}),
                "NAME=a SUSPENDED=True READY=True MESSAGE=Alert is Ready",
            ),
            (
                &kind::IMAGE_POLICY,
                json!({}),
                json!({"latestImage": "r:5000/i:v1"}),
                "NAME=a IMAGE=r:5000/i TAG=v1 READY=False MESSAGE=waiting to be reconciled",
            ),
            (
                &kind::IMAGE_REPOSITORY,
                json!({}),
                json!({"lastScanResult": {"scanTime": "2026-01-01T00:00:00Z"}}),
                "NAME=a LAST SCAN=2026-01-01T00:00:00Z SUSPENDED=False READY=False MESSAGE=waiting to be reconciled",
            ),
        ] {
            let cells = table(of, Columns::default(), object(&spec, &status));
            assert_eq!(line(&cells), expected);
        }
    }

    #[test]
    fn broken_providers_say_why() {
        for (conditions, expected) in [
            (
                json!([{"type": "Ready", "status": "False", "message": "no secret"}]),
                "NAME=a READY=False MESSAGE=no secret",
            ),
            (
                json!([{"type": "Ready", "status": "True", "message": "Initialized"}]),
                "NAME=a READY=True MESSAGE=Provider is Ready",
            ),
            (
                json!([
                    {"type": "Ready", "status": "True", "message": "Initialized"},
                    {"type": "Delivered", "status": "False", "message": "404"},
                ]),
                "NAME=a READY=True MESSAGE=not delivered: 404",
            ),
        ] {
            let status = json!({"conditions": conditions});
            let cells = table(&kind::PROVIDER, Columns::default(), object(&json!({}), &status));
            assert_eq!(line(&cells), expected);
        }
    }

    #[test]
    fn more_columns_are_added_on_request() {
        let all = Columns {
            namespace: true,
            group: true,
            kind_prefix: true,
            source: true,
            suspension: true,
            age: true,
        };
        let spec =
            json!({"chart": {"spec": {"chart": "c", "sourceRef": {"kind": "HelmRepository", "name": "r"}}}});
        let cells = table(&kind::HELM_RELEASE, all, object(&spec, &json!({})));
        assert_eq!(
            line(&cells),
            "NAMESPACE=n NAME=helmrelease/a GROUP=helm.toolkit.fluxcd.io SOURCE=HelmRepository/n/r REVISION= SUSPENDED=False \
             READY=False MESSAGE=waiting to be reconciled SUSPENSION= AGE=5m"
        );
        let mut noted = object(&json!({"suspend": true}), &json!({}));
        noted["metadata"]["annotations"] = json!({"weir.io/suspended-by": "carol"});
        let cells = table(&kind::RECEIVER, all, noted);
        assert!(line(&cells).ends_with("SUSPENSION=by carol AGE=5m"));
        let kluctl = json!({"source": {"git": {"url": "https://git.example.com/x"}}});
        let cells = table(&kind::GITOPS_KLUCTL_DEPLOYMENT, all, object(&kluctl, &json!({})));
        assert!(line(&cells).contains("SOURCE=https://git.example.com/x"));
    }

    #[test]
    fn odd_fields_do_not_hide_an_object() {
        let odd =
            json!({"metadata": {"name": "a", "labels": null}, "spec": null, "status": {"conditions": null}});
        let cells = table(&kind::KUSTOMIZATION, Columns::default(), odd);
        let mut text = Table::new([""; 0]);
        text.push(cells.into_iter().map(|(_, cell)| cell).collect());
        assert_eq!(text.text(), "a\t\tFalse\tFalse\twaiting to be reconciled\t\n");
    }
}
