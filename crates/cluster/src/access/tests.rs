use super::*;

fn kubeconfig(user: &str, cluster: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         contexts: [{{name: c, context: {{cluster: k, user: u, namespace: n}}}}]\n\
         clusters: [{{name: k, cluster: {{{cluster}}}}}]\nusers: [{{name: u, user: {{{user}}}}}]\n"
    )
}

const SERVER: &str = "server: 'https://10.0.0.1:6443'";

#[tokio::test]
async fn inline_credentials_are_accepted() {
    let config = user_config(kubeconfig("token: canary", SERVER).as_bytes())
        .await
        .unwrap();
    assert_eq!(config.cluster_url.to_string(), "https://10.0.0.1:6443/");
    assert!(config.auth_info.token.is_some());
}

#[tokio::test]
async fn programs_files_and_impersonation_are_refused_by_name() {
    for (user, cluster, field) in [
        (
            "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}",
            SERVER,
            "exec",
        ),
        ("auth-provider: {name: gcp, config: {}}", SERVER, "auth-provider"),
        (
            "tokenFile: /var/run/secrets/kubernetes.io/serviceaccount/token",
            SERVER,
            "tokenFile",
        ),
        ("client-certificate: /etc/cert", SERVER, "client-certificate"),
        ("client-key: /etc/key", SERVER, "client-key"),
        ("token: t, as: 'system:admin'", SERVER, "as (impersonation)"),
        (
            "token: t, as-groups: ['system:masters']",
            SERVER,
            "as (impersonation)",
        ),
        (
            "token: t",
            "server: 'https://x', certificate-authority: /etc/ca",
            "certificate-authority",
        ),
        (
            "token: t",
            "server: 'https://x', proxy-url: 'http://proxy'",
            "proxy-url",
        ),
        (
            "token: t",
            "server: 'https://x', insecure-skip-tls-verify: true",
            "insecure-skip-tls-verify",
        ),
    ] {
        let error = user_config(kubeconfig(user, cluster).as_bytes())
            .await
            .unwrap_err();
        assert!(matches!(error, Error::KubeconfigRefused(_)), "{error:?}");
        let error = error.to_string();
        assert!(
            error.contains(&format!("uses {field}, which is not allowed")),
            "{user} {cluster}: {error}"
        );
    }
}

#[tokio::test]
async fn insecure_tls_is_accepted_if_the_rules_allow_it() {
    let insecure = kubeconfig("token: t", "server: 'https://x', insecure-skip-tls-verify: true");
    let rules = KubeconfigRules { insecure_tls: true };
    let config = user_config_with(insecure.as_bytes(), rules).await.unwrap();
    assert!(config.accept_invalid_certs);
    let verified = kubeconfig("token: t", "server: 'https://x', insecure-skip-tls-verify: false");
    let config = user_config(verified.as_bytes()).await.unwrap();
    assert!(!config.accept_invalid_certs);
}

#[tokio::test]
async fn errors_omit_the_contents_of_a_kubeconfig() {
    for text in [
        kubeconfig("token: [canary]", SERVER),
        kubeconfig("token: \"canary\\n\"", SERVER),
        kubeconfig("token: canary", "server: 'https://canary canary'"),
        kubeconfig("token: canary, client-certificate-data: canary!", SERVER),
        "canary: [".to_owned(),
        "token: \"canary\ntoken: canary".to_owned(),
        kubeconfig("token: canary", SERVER).replace("current-context: c", "current-context: canary"),
        "[canary]".to_owned(),
    ] {
        let Err(error) = user_config(text.as_bytes()).await.and_then(client) else {
            panic!("{text}")
        };
        assert!(
            error.to_string().starts_with("the kubeconfig can't be used: "),
            "{error}"
        );
        assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
    }
    assert!(user_config(&[0xff]).await.is_err());
    assert!(
        user_config("a: b\n".repeat(1 << 18).as_bytes())
            .await
            .unwrap_err()
            .to_string()
            .contains("larger than")
    );
}

#[test]
fn contexts_are_renamed_in_order() {
    let renamed = |renames: &[(&str, &str)]| Contexts::default().rename(renames.iter().copied());
    assert_eq!(renamed(&[]).unwrap().names, ["default"]);
    let chain = renamed(&[("default", "a"), ("a", "kind-kind")]).unwrap();
    assert_eq!(
        (chain.current.as_deref(), chain.names.as_slice()),
        (Some("kind-kind"), &["kind-kind".to_owned()][..])
    );
    assert_eq!(
        renamed(&[("prod", "a")]).unwrap_err().to_string(),
        "failed to rename context prod -> a. Old context not found in kubeconfig"
    );
    assert_eq!(
        renamed(&[("default", "default")]).unwrap_err().to_string(),
        "failed to rename context default -> default. New context already present in kubeconfig"
    );
}

#[test]
fn service_accounts_are_users() {
    assert_eq!(
        service_account("shop", "deployer"),
        "system:serviceaccount:shop:deployer"
    );
}
