//! Attempts of team A of the page to read, change and stop objects of team B.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use testkit::eventually;

use super::Tutorial;
use crate::cluster::TIMEOUT;

const ATTACKER: &str = "team-a";
const VICTIM: &str = "team-b";

/// Commands that the role of team A refuses.
const REFUSED: [&str; 16] = [
    "kubectl get secrets --namespace=team-b",
    "kubectl get pods --namespace=team-b",
    "kubectl get secrets --namespace=flux-system",
    "weir get kustomizations --namespace=team-b",
    "weir get sources git --namespace=flux-system",
    "weir suspend kustomization apps --namespace=team-b",
    "weir suspend source git flux-system",
    "weir reconcile source git apps --namespace=team-b",
    "weir delete kustomization apps --namespace=team-b --silent",
    "weir delete source git apps --namespace=team-b --silent",
    "weir create secret git apps --namespace=team-b --url=https://git.example.com/a.git --username=a --password=b",
    "kubectl delete deployment web --namespace=team-b",
    "kubectl delete namespace team-b",
    "kubectl delete resourcequota tenant --namespace=team-a",
    "kubectl delete limitrange tenant --namespace=team-a",
    "kubectl create rolebinding more --clusterrole=admin --serviceaccount=team-a:team-a --namespace=team-a",
];

/// Objects whose controllers write their status.
const RECONCILED: &str =
    "gitrepositories.source.toolkit.fluxcd.io,kustomizations.kustomize.toolkit.fluxcd.io";
const OTHERS: &str = "deployments,configmaps,secrets,serviceaccounts,rolebindings,limitranges";

/// Lets team A try, by the API server and by the controllers, and checks that team B goes on.
pub async fn check(tutorial: &Tutorial) -> Result<()> {
    let before = state(tutorial).await?;
    ensure!(before.len() > 5, "team B has too little: {before:?}");
    let account = tutorial
        .production
        .service_account_kubeconfig(ATTACKER, ATTACKER)
        .await?;
    let own = "weir get kustomizations --namespace=team-a";
    let (is_done, printed) = tutorial.session.run_as(&account, own).await?;
    ensure!(is_done && printed.contains("apps"), "{own}: {printed}");
    for command in REFUSED {
        let (is_done, printed) = tutorial.session.run_as(&account, command).await?;
        ensure!(!is_done, "{command} is not refused: {printed}");
        ensure!(printed.contains("forbidden"), "{command}: {printed}");
    }
    for attempt in attempts() {
        attempt.fails(tutorial, &account).await?;
    }
    let after = state(tutorial).await?;
    ensure!(before == after, "before: {before:#?}\nafter: {after:#?}");
    victim_goes_on(tutorial).await?;
    quota_holds(tutorial).await
}

/// A Kustomization in the namespace of team A that reaches for more.
struct Attempt {
    name: &'static str,
    spec: Value,
    /// Part of the message with which it fails.
    refusal: &'static str,
}

fn attempts() -> [Attempt; 4] {
    let own = json!({"kind": "GitRepository", "name": "apps"});
    let foreign = json!({"kind": "GitRepository", "name": "apps", "namespace": VICTIM});
    [
        Attempt {
            name: "foreign-source",
            spec: json!({"sourceRef": foreign, "serviceAccountName": ATTACKER}),
            refusal: "cross-namespace references have been blocked",
        },
        Attempt {
            name: "foreign-namespace",
            spec: json!({"sourceRef": own, "serviceAccountName": ATTACKER, "targetNamespace": VICTIM}),
            refusal: "forbidden",
        },
        Attempt {
            name: "foreign-account",
            spec: json!({"sourceRef": own, "serviceAccountName": VICTIM}),
            refusal: "forbidden",
        },
        // Not the rights of the controller, or of the platform.
        Attempt {
            name: "no-account",
            spec: json!({"sourceRef": own}),
            refusal: "forbidden",
        },
    ]
}

impl Attempt {
    /// Creates it as team A, and waits until it is refused.
    async fn fails(&self, tutorial: &Tutorial, account: &Path) -> Result<()> {
        let mut spec = json!({"interval": "1h", "retryInterval": "1h", "path": "./", "prune": true});
        if let (Some(spec), Some(own)) = (spec.as_object_mut(), self.spec.as_object()) {
            spec.extend(own.clone());
        }
        let object = json!({
            "apiVersion": "kustomize.toolkit.fluxcd.io/v1", "kind": "Kustomization",
            "metadata": {"name": self.name, "namespace": ATTACKER}, "spec": spec,
        });
        let commands = format!("kubectl apply -f - <<'END'\n{object}\nEND");
        let (is_done, printed) = tutorial.session.run_as(account, &commands).await?;
        ensure!(is_done, "{printed}");
        let what = format!("Kustomization {} to be refused", self.name);
        eventually(&what, TIMEOUT, || async {
            let words = ["get", "kustomization", self.name, "-n", ATTACKER, "-o", "json"];
            let live: Value = serde_json::from_str(&tutorial.production.kubectl(&words).await?)?;
            let ready = testkit::ready(&serde_json::from_value(live)?);
            let message = ready["message"].as_str().unwrap_or_default();
            ensure!(
                ready["status"] == "False" && message.contains(self.refusal),
                "{ready}"
            );
            Ok(())
        })
        .await
    }
}

/// Returns UID and version of all objects of team B; for those with a status, the version of the spec.
async fn state(tutorial: &Tutorial) -> Result<BTreeMap<String, String>> {
    let mut state = BTreeMap::new();
    for (kinds, version) in [(OTHERS, "resourceVersion"), (RECONCILED, "generation")] {
        let words = ["get", kinds, "-n", VICTIM, "-o", "json"];
        let list: Value = serde_json::from_str(&tutorial.production.kubectl(&words).await?)?;
        for object in list["items"].as_array().context("no list")? {
            let metadata = &object["metadata"];
            let name = format!("{}/{}", object["kind"], metadata["name"]);
            state.insert(name, format!("{} {}", metadata["uid"], metadata[version]));
        }
    }
    Ok(state)
}

/// Pushes a change of team B, and waits until it is deployed.
async fn victim_goes_on(tutorial: &Tutorial) -> Result<()> {
    let commands = "cd \"$HOME\"
kubectl create configmap settings --namespace=team-b --dry-run=client -o yaml > team-b/settings.yaml
git -C team-b add --all
git -C team-b commit --message='Add settings'
git -C team-b push origin HEAD:main
weir reconcile source git apps --namespace=team-b
weir reconcile kustomization apps --namespace=team-b
kubectl get configmap settings --namespace=team-b
";
    let (is_done, printed) = tutorial.session.run(commands).await?;
    ensure!(is_done, "{printed}");
    Ok(())
}

/// Pushes more Pods of team A than its quota has.
async fn quota_holds(tutorial: &Tutorial) -> Result<()> {
    let commands = "cd \"$HOME\"
kubectl create deployment many --image=nginx:1.29 --replicas=20 --namespace=team-a --dry-run=client -o yaml > team-a/many.yaml
git -C team-a add --all
git -C team-a commit --message='Add more than the quota has'
git -C team-a push origin HEAD:main
weir reconcile source git apps --namespace=team-a
kubectl wait deployment many --namespace=team-a --for=create --timeout=2m
kubectl wait deployment many --namespace=team-a --for=condition=ReplicaFailure --timeout=2m
";
    let (is_done, printed) = tutorial.session.run(commands).await?;
    ensure!(is_done, "{printed}");
    eventually("the quota to be used up", TIMEOUT, || async {
        let words = ["get", "resourcequota", "tenant", "-n", ATTACKER, "-o", "json"];
        let quota: Value = serde_json::from_str(&tutorial.production.kubectl(&words).await?)?;
        ensure!(quota["status"]["used"]["pods"] == "10", "{}", quota["status"]);
        Ok(())
    })
    .await?;
    let words = ["get", "pods", "-n", ATTACKER, "-o", "name"];
    let pods = tutorial.production.kubectl(&words).await?;
    ensure!(pods.lines().count() == 10, "{pods}");
    Ok(())
}
