//! Projects in several Git repositories: older forms of projects, and encrypted files.

use std::sync::Arc;

use anyhow::Result;
use api::Secret;
use engine::{ExternalAccess, RenderOptions};
use kluctl::{GitReference, Rendered, Request, SourceAddress};
use oci::Access;
use remote::SourceCredentials;
use secrets::Keys;
use testkit::{GitServer, SshKeyPair, SshServer, git::Repo};
use tokio_util::sync::CancellationToken;
use tree::{Limits, Mem};
use yaml::Value;

use crate::external::MAP;

const KEY: &str = include_str!("../../../secrets/fixtures/age.txt");
const SECRET: &str = include_str!("../../../secrets/fixtures/secret.yaml");

struct User;

impl SourceCredentials for User {
    fn git(&self, _: &str) -> Result<(Option<git::Auth>, Option<Vec<u8>>), remote::Error> {
        let auth = git::Auth {
            username: "me".to_owned(),
            password: Secret::new("s3cret".to_owned()),
        };
        Ok((Some(auth), None))
    }

    fn registry(&self, url: &str) -> Result<Access, remote::Error> {
        Err(remote::Error::Credentials(format!(
            "{url} is not a Git repository"
        )))
    }

    fn helm(&self, url: &str, _credentials_id: Option<&str>) -> Result<Access, remote::Error> {
        Err(remote::Error::Credentials(format!(
            "{url} is not a Git repository"
        )))
    }
}

fn rendering() -> RenderOptions {
    let mut keys = Keys::new();
    keys.add_age(&KEY.to_owned().into()).unwrap();
    RenderOptions {
        keys: Some(Arc::new(keys)),
        external: ExternalAccess::default().with_credentials(Arc::new(User)),
        ..RenderOptions::default()
    }
}

async fn render(files: &[(&str, &str)], target: Option<&str>) -> Result<Rendered, String> {
    let files = files.iter().map(|(path, text)| (*path, (*text).to_owned()));
    let tree = Arc::new(Mem::from_files(files).unwrap());
    let request = Request {
        target: target.map(str::to_owned),
        ..Request::default()
    };
    let rendered = engine::render_offline(tree, request, &rendering()).await;
    rendered.map_err(|error| {
        let error = error.to_string();
        assert!(!error.contains("s3cret"), "{error}");
        error
    })
}

fn values(rendered: &Rendered) -> String {
    let value = |object| Value::pointer(object, &["data", "v"]).and_then(Value::as_str);
    rendered.objects().filter_map(value).collect::<Vec<_>>().join(",")
}

/// Creates a branch beside `main` whose only file defines a target.
fn branch(repo: &Repo, name: &str, config: &str) -> Result<String> {
    let id = repo.commit(name, &[("target-config.yml", config)])?;
    repo.branch(name, &id)?;
    Ok(id)
}

#[tokio::test(flavor = "multi_thread")]
async fn clusters_and_deployments_of_older_projects_are_in_other_repositories() -> Result<()> {
    let server = GitServer::start()?;
    let (first, second, deployment) = (
        server.repo("first")?,
        server.repo("second")?,
        server.repo("deployment")?,
    );
    let kind = |dns: &str| format!("cluster: {{name: kind, context: ctx, dns: {dns}}}");
    first.commit(
        "1",
        &[
            ("clusters/kind.yml", &kind("old")),
            ("clusters/bad.yml", "cluster: {name: other}"),
        ],
    )?;
    let id = second.commit("1", &[("c/kind.yaml", &kind("new"))])?;
    second.tag("v1", &id)?;
    second.commit("2", &[("c/kind.yaml", &kind("newest"))])?;
    let vars = "vars: [{values: {v: '{{ cluster.dns }} {{ args.a }} {{ target.cluster }}'}}]\ndeployments: [{path: app}]";
    deployment.commit("1", &[("d/deployment.yml", vars), ("d/app/m.yaml", MAP)])?;
    for repo in [&first, &second, &deployment] {
        repo.require_basic_auth("me", "s3cret");
    }
    let project = format!(
        "clusters:\n- project: {}\n- project: {{url: '{}', ref: v1, subDir: c}}\n\
         deployment: {{project: {{url: '{}', ref: main, subDir: d}}}}\n\
         targets:\n- {{name: t, cluster: kind, args: {{a: '{{{{ cluster.dns }}}}'}}}}\n\
         - {{name: unknown, cluster: nope}}\n- {{name: bad, cluster: bad}}\n- {{name: up, cluster: ../x}}\n",
        first.url(),
        second.url(),
        deployment.url(),
    );
    let render = async |target| render(&[(".kluctl.yml", &project)], Some(target)).await;
    let rendered = render("t").await.unwrap();
    assert_eq!(
        values(&rendered),
        "new new kind",
        "of several descriptions, the last counts"
    );
    for (target, expected) in [
        (
            "unknown",
            "cluster config for nope not found: target unknown needs nope.yml",
        ),
        ("bad", "cluster.name is not bad"),
        ("up", "\"../x\" can't be the name of a cluster"),
    ] {
        let error = render(target).await.unwrap_err();
        assert!(error.contains(expected), "{target}: {error}");
    }
    let error = render("bad").await.unwrap_err();
    assert!(error.contains(&first.url()), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_older_projects_are_in_other_directories() -> Result<()> {
    let files = |clusters: &'static str, deployment: &'static str| {
        let project = format!(
            "clusters: {{path: {clusters}}}\ndeployment: {{path: {deployment}}}\ntargets: [{{name: t, cluster: kind}}]\n"
        );
        [
            (".kluctl.yml", project),
            ("all/kind.yml", "cluster: {name: kind, dns: near}".to_owned()),
            (
                "d/deployment.yml",
                "vars: [{values: {v: '{{ cluster.dns }}'}}]\ndeployments: [{path: app}]".to_owned(),
            ),
            ("d/app/m.yaml", MAP.to_owned()),
        ]
    };
    let render = async |clusters, deployment| {
        let files = files(clusters, deployment);
        let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
        render(&files, Some("t")).await
    };
    assert_eq!(values(&render("all", "./d").await.unwrap()), "near");
    for (clusters, deployment) in [("../all", "d"), ("all", "../d")] {
        let error = render(clusters, deployment).await.unwrap_err();
        assert!(
            error.contains("is not inside of the repository of the project"),
            "{error}"
        );
    }
    let both = "deployment: {path: d, project: 'https://x/y'}";
    let error = self::render(&[(".kluctl.yml", both)], None).await.unwrap_err();
    assert!(error.contains("only one of project and path"), "{error}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn branches_create_targets() -> Result<()> {
    let server = GitServer::start()?;
    let repo = server.repo("targets")?;
    let id = branch(
        &repo,
        "env-a",
        "args: {size: 1, deep: {er: x}}\nimages: [{image: i, resultImage: 'i:1'}]",
    )?;
    repo.tag("env-tag", &id)?;
    branch(&repo, "env-b", "args: {size: 12}")?;
    branch(&repo, "env-c", "args: {other: 1}")?;
    branch(&repo, "env-d", "sizes: 1")?;
    branch(&repo, "env-e", "args: {deep: {other: 1}}")?;
    let id = repo.commit("none", &[("README.md", "x")])?;
    repo.branch("other", &id)?;
    let with = |config: &str| {
        format!(
            "targets:\n- name: \"t-{{{{ target.targetConfig.ref }}}}\"\n  args: {{size: 0, own: z}}\n  images: [{{image: j, resultImage: 'j:1'}}]\n  \
             dynamicArgs: [{{name: size, pattern: '[0-9]'}}, {{name: deep.er}}]\n  targetConfig: {{project: '{}', {config}}}\n",
            repo.url()
        )
    };
    let deployment = "vars: [{values: {v: '{{ args.size }} {{ args.own }} {{ target.targetConfig.ref }}'}}]\ndeployments: [{path: app}]";
    let render = async |config: &str, target: &str| {
        let project = with(config);
        let files = [
            (".kluctl.yml", &*project),
            ("deployment.yml", deployment),
            ("app/m.yaml", MAP),
        ];
        render(&files, Some(target)).await
    };
    let rendered = render("refPattern: env-.*", "t-env-a").await.unwrap();
    assert_eq!(values(&rendered), "1 z env-a");
    let images: Vec<_> = rendered
        .target
        .images
        .iter()
        .filter_map(|image| image.get("image"))
        .collect();
    assert_eq!(
        images,
        [&Value::from("i"), &Value::from("j")],
        "those of the file count first"
    );
    for expected in [
        "arg size does not match [0-9]",
        "arg other is not allowed for target",
        "unknown field \"sizes\"",
        "arg deep.other is not allowed for target",
    ] {
        let told = rendered.warnings.iter().any(|warning| {
            warning.contains(expected) && warning.contains(&format!("{}@refs/heads/env-", repo.url()))
        });
        assert!(told, "{expected}: {:?}", rendered.warnings);
    }
    let of_tag = render("refPattern: env-.*", "t-env-tag").await.unwrap();
    assert_eq!(values(&of_tag), "1 z env-tag");
    let whole = render("refPattern: refs/heads/env-a", "t-refs/heads/env-a")
        .await
        .unwrap();
    assert_eq!(values(&whole), "1 z refs/heads/env-a");
    assert_eq!(
        values(&render("ref: env-a", "t-env-a").await.unwrap()),
        "1 z env-a"
    );
    let default = render("file: target-config.yaml", "t-main").await.unwrap_err();
    assert!(default.contains("arg deep.other is not allowed"), "{default}");
    for (config, target, expected) in [
        ("refPattern: env-b", "t-env-b", "arg size does not match"),
        ("refPattern: env-.*", "t-nope", "target t-nope not existent"),
        ("refPattern: no-.*", "t-no", "target t-no not existent"),
        ("ref: nope", "t-nope", "ref refs/heads/nope not found"),
        (
            "ref: env-a, file: x.yml",
            "t-env-a",
            "no target config file with name x.yml found",
        ),
        ("ref: env-a, file: ../x.yml", "t-env-a", "../x.yml"),
        (
            "ref: env-a, refPattern: x",
            "t",
            "only one of ref and refPattern can be set",
        ),
        ("refPattern: '('", "t", "targets[0].targetConfig.refPattern"),
    ] {
        let error = render(config, target).await.unwrap_err();
        assert!(error.contains(expected), "{config}: {error}");
    }
    repo.require_basic_auth("me", "other");
    let error = render("refPattern: env-.*", "t-env-a").await.unwrap_err();
    assert!(
        error.contains("failed to fetch") && error.contains("/targets"),
        "{error}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn first_of_duplicate_targets_is_used() -> Result<()> {
    let server = GitServer::start()?;
    let repo = server.repo("targets")?;
    branch(&repo, "a", "args: {v: a}")?;
    branch(&repo, "b", "args: {v: b}")?;
    let project = format!(
        "targets:\n- name: same\n  dynamicArgs: [{{name: v}}]\n  targetConfig: {{project: '{}', refPattern: '[ab]'}}\n",
        repo.url()
    );
    let files = [
        (".kluctl.yml", &*project),
        (
            "deployment.yml",
            "vars: [{values: {v: '{{ args.v }}'}}]\ndeployments: [{path: app}]",
        ),
        ("app/m.yaml", MAP),
    ];
    let rendered = render(&files, Some("same")).await.unwrap();
    assert_eq!(
        (values(&rendered).as_str(), &*rendered.warnings),
        ("a", &["Duplicate target same".to_owned()][..])
    );
    Ok(())
}

/// A file of one repository does not validate a changed file at the same path of another one.
#[tokio::test(flavor = "multi_thread")]
async fn encrypted_files_are_verified_per_repository() -> Result<()> {
    let server = GitServer::start()?;
    let (good, bad) = (server.repo("good")?, server.repo("bad")?);
    let changed = SECRET.replace("name: shop", "name: other");
    let deployment = ("deployment.yaml", "deployments: [{path: app}]");
    good.commit("1", &[deployment, ("app/secret.yaml", SECRET)])?;
    bad.commit("1", &[deployment, ("app/secret.yaml", &changed)])?;
    let vars = |url: &str, kind: &str| match kind {
        "include" => format!("deployments: [{{git: '{url}'}}]"),
        "git" => format!("vars: [{{git: {{url: '{url}', path: app/secret.yaml}}}}]"),
        "legacy" => String::new(),
        _ => format!(
            "vars: [{{gitFiles: {{url: '{url}', files: [{{glob: 'app/*', parseYaml: true}}]}}, targetPath: g}}]"
        ),
    };
    for kind in ["include", "git", "gitFiles", "legacy"] {
        // The project has a good file at the path of the bad one, and the other way round.
        for (repo, own, expected) in [(&good, &*changed, true), (&bad, SECRET, false)] {
            let text = vars(&repo.url(), kind);
            let project = match kind {
                "legacy" => format!("deployment: {{project: '{}'}}", repo.url()),
                _ => String::new(),
            };
            let files = [
                ("deployment.yaml", &*text),
                (".kluctl.yaml", &*project),
                ("app/secret.yaml", own),
            ];
            match render(&files, None).await {
                Ok(rendered) => {
                    assert!(expected, "{kind}");
                    assert_eq!(rendered.warnings, [""; 0]);
                }
                Err(error) => {
                    let named = error.contains("MAC mismatch") && error.contains(&repo.url());
                    assert!(!expected && named, "{kind}: {error}");
                }
            }
        }
    }
    Ok(())
}

/// Keys for all repositories over SSH.
struct SshUser(git::SshLogin);

impl SourceCredentials for SshUser {
    fn git(&self, _: &str) -> Result<(Option<git::Auth>, Option<Vec<u8>>), remote::Error> {
        Ok((None, None))
    }

    fn ssh(&self, remote: git::Remote) -> Result<git::Remote, remote::Error> {
        Ok(remote.with_ssh(self.0.clone()))
    }

    fn registry(&self, url: &str) -> Result<Access, remote::Error> {
        Err(remote::Error::Credentials(format!(
            "{url} is not a Git repository"
        )))
    }

    fn helm(&self, url: &str, _credentials_id: Option<&str>) -> Result<Access, remote::Error> {
        Err(remote::Error::Credentials(format!(
            "{url} is not a Git repository"
        )))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn project_and_its_includes_need_one_login_over_ssh() {
    let git = GitServer::start().unwrap();
    let (project, included) = (git.repo("project").unwrap(), git.repo("included").unwrap());
    let pair = SshKeyPair::generate("-t ed25519", "").unwrap();
    let server = SshServer::start(&git, &[&pair]).unwrap();
    let files = [
        (
            "deployment.yaml",
            "deployments: [{path: cm}]\nvars: [{values: {v: x}}]\n",
        ),
        ("cm/map.yaml", MAP),
    ];
    included.commit("one", &files).unwrap();
    let include = format!("deployments: [{{git: '{}'}}]", server.url(&included));
    project.commit("one", &[("deployment.yaml", &include)]).unwrap();
    let login = git::SshLogin {
        keys: vec![git::SshKey::parse(pair.private.as_bytes(), None, "identity").unwrap()],
        known_hosts: git::KnownHosts::parse(server.known_hosts().unwrap().as_bytes()).unwrap(),
        ..git::SshLogin::default()
    };
    let options = || RenderOptions {
        external: ExternalAccess::default().with_credentials(Arc::new(SshUser(login.clone()))),
        ..RenderOptions::default()
    };
    for passes in 1..=2 {
        let options = options();
        let address = SourceAddress::Git {
            url: server.url(&project),
            reference: GitReference::Branch("main".to_owned()),
        };
        let (limits, cancel) = (Limits::default(), CancellationToken::new());
        let fetching = engine::fetch_project(address, &options.external, &limits, &options.ssh, &cancel);
        let fetched = fetching.await.unwrap();
        let rendered = engine::render_offline(fetched.tree, Request::default(), &options).await;
        assert_eq!(rendered.unwrap().objects().count(), 1);
        assert_eq!(server.logins(), passes, "{}", server.log());
    }
}
