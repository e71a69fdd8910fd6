//! Remote bases and files of `weir kustomize build`.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{Ipv4Addr, TcpListener},
    process::Output,
    thread,
    time::Duration,
};

use testkit::{
    GitServer,
    git::{Repo, Step},
};

use crate::program::{MAP, files, printed, refused, weir};

/// A repository with a base in `base`, whose branch `old` and tag `v1` have another name for its object.
fn shop(server: &GitServer) -> Repo {
    let repo = server.repo("shop").unwrap();
    let old = MAP.replace("name: m", "name: old");
    let resources = [
        ("base/kustomization.yaml", "resources: [map.yaml]\n"),
        ("base/map.yaml", old.as_str()),
        (
            "over/kustomization.yaml",
            "resources: [../base]\nnamePrefix: over-\n",
        ),
        (
            "part/kustomization.yaml",
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: part-\n",
        ),
        ("above/kustomization.yaml", "resources: [../../x]\n"),
        ("open/kustomization.yaml", "resources: [../base/map.yaml]\n"),
    ];
    let first = repo.commit("first", &resources).unwrap();
    repo.branch("old", &first).unwrap();
    repo.annotated_tag("v1", &first, "version 1").unwrap();
    repo.commit("second", &[("base/map.yaml", MAP)]).unwrap();
    repo
}

fn build_of(kustomization: &str) -> Output {
    let dir = files(&[("kustomization.yaml", kustomization), ("map.yaml", MAP)]);
    weir(dir.path(), &[])
}

fn build_resource(entry: &str) -> Output {
    build_of(&format!("resources: ['{entry}']\n"))
}

fn named(name: &str) -> String {
    MAP.replace("name: m", &format!("name: {name}"))
}

#[test]
fn build_fetches_remote_bases() {
    let server = GitServer::start().unwrap();
    let repo = shop(&server);
    let url = repo.url();
    let (old, new) = (repo.rev("old").unwrap(), repo.rev("main").unwrap());
    for (entry, name) in [
        (format!("{url}//base"), "m"),
        (format!("{url}/over"), "over-m"),
        (format!("git::{url}/over?timeout=20s"), "over-m"),
        (format!("{url}//base?ref=old"), "old"),
        (format!("{url}//base?ref=v1"), "old"),
        (format!("{url}//base?version=heads/main"), "m"),
        (format!("{url}//base?ref=refs/heads/old"), "old"),
        (format!("{url}//over?ref={old}"), "over-old"),
        (format!("{url}//base?ref={new}&submodules=false"), "m"),
    ] {
        assert_eq!(printed(&build_resource(&entry)), named(name), "{entry}");
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(printed(&weir(dir.path(), &[&entry])), named(name), "{entry}");
    }
}

#[test]
fn build_fetches_remote_components_once_per_repository() {
    let server = GitServer::start().unwrap();
    let repo = shop(&server);
    let url = repo.url();
    let kustomization = format!("resources: ['{url}//base', '{url}//over']\ncomponents: ['{url}//part']\n");
    let built = printed(&build_of(&kustomization));
    assert_eq!(built, format!("{}---\n{}", named("part-m"), named("part-over-m")));
    let fetches = repo.requests();
    assert_eq!(
        fetches
            .iter()
            .filter(|request| request.step == Step::Fetch)
            .count(),
        1
    );
}

#[test]
fn build_follows_symlinks_inside_of_a_repository() {
    let server = GitServer::start().unwrap();
    let repo = shop(&server);
    repo.change("links")
        .link("linked", "x/../base")
        .write("x/file", "")
        .link("way", "linked/../over")
        .link("out", "../../etc")
        .link("abs", "/etc")
        .link("loop", "loop")
        .push()
        .unwrap();
    let url = repo.url();
    assert_eq!(printed(&build_resource(&format!("{url}//linked"))), MAP);
    assert_eq!(printed(&build_resource(&format!("{url}//way"))), named("over-m"));
    for (dir, why) in [
        ("out", "leads outside"),
        ("abs", "leads outside"),
        ("loop", "too many links"),
    ] {
        let stderr = refused(&build_resource(&format!("{url}//{dir}")));
        assert!(stderr.contains(why), "{stderr}");
    }
}

#[test]
fn remote_bases_cannot_load_files_outside_of_the_repository() {
    let server = GitServer::start().unwrap();
    let repo = shop(&server);
    let url = repo.url();
    let text = format!("resources: ['{url}//cycle']\n");
    repo.change("more")
        .write("cycle/kustomization.yaml", text)
        .write("inside/kustomization.yaml", "resources: [sub/a]\n")
        .submodule("inside/sub", &repo.rev("main").unwrap())
        .push()
        .unwrap();
    for (dir, why) in [
        ("cycle", "cycle detected: URI '"),
        ("above", "leads outside of its root directory"),
        ("inside", "'inside/sub' is a submodule, and those are not fetched"),
        ("nope", "not a valid directory: evalsymlink failure on 'nope'"),
    ] {
        let stderr = refused(&build_resource(&format!("{url}//{dir}")));
        assert!(stderr.contains(why), "{dir}: {stderr}");
    }
    // Files without rights never leave their directory.
    let dir = tempfile::tempdir().unwrap();
    let arguments = [
        &*format!("{url}//open"),
        "--load-restrictor",
        "LoadRestrictionsNone",
    ];
    let stderr = refused(&weir(dir.path(), &arguments));
    assert!(stderr.contains("is not in or below 'open'"), "{stderr}");
}

#[test]
fn fetch_errors_name_url_and_cause() {
    let server = GitServer::start().unwrap();
    let repo = shop(&server);
    let (url, origin) = (repo.url(), server.origin());
    for (entry, why) in [
        (
            format!("{url}//base?ref=nope"),
            format!("branch or tag 'nope' not found in '{url}'"),
        ),
        (
            format!("{url}//base?ref=0123abc"),
            "a commit must be given by its full hash of 40 digits".to_owned(),
        ),
        (
            format!("{url}//base?ref={}", "1".repeat(40)),
            format!("commit '{}' not found", "1".repeat(40)),
        ),
        (
            format!("{origin}/none/of.git//base"),
            format!("repository not found at '{origin}/none/of.git'"),
        ),
        (
            format!("{origin}/map.yaml"),
            "HTTP Error: status code 404 (Not Found)\n".to_owned(),
        ),
        (
            format!("{origin}/a/map.yaml"),
            "HTTP Error: status code 404 (Not Found)".to_owned(),
        ),
        (
            "http://169.254.169.254/a/b".to_owned(),
            "link-local addresses are not allowed".to_owned(),
        ),
        (
            "git@169.254.169.254:a/b".to_owned(),
            "link-local addresses are not allowed".to_owned(),
        ),
    ] {
        let stderr = refused(&build_resource(&entry));
        assert!(stderr.contains(&why), "{entry}: {stderr}");
    }
}

#[test]
fn fetch_times_out() {
    let server = GitServer::start().unwrap();
    let repo = shop(&server);
    repo.delay(Duration::from_secs(600));
    let dir = tempfile::tempdir().unwrap();
    let stderr = refused(&weir(dir.path(), &[&format!("{}//base?timeout=1", repo.url())]));
    assert!(
        stderr.contains("timeout after 1s: a longer one can be set in the URL"),
        "{stderr}"
    );
}

#[test]
fn passwords_in_urls_are_used_and_never_printed() {
    let server = GitServer::start().unwrap();
    let repo = shop(&server);
    repo.require_basic_auth("me", "canary1");
    let with = |user: &str| repo.url().replacen("://", &format!("://{user}@"), 1);
    let right = with("me:canary1");
    assert_eq!(printed(&build_resource(&format!("{right}//base"))), MAP);
    let noted = format!("resources: ['{right}//base']\nbuildMetadata: [originAnnotations]\n");
    let built = printed(&build_of(&noted));
    assert!(
        built.contains(&format!("repo: {}", repo.url())) && !built.contains("canary"),
        "{built}"
    );
    let wrong = with("me:canary2");
    for stderr in [
        refused(&build_resource(&repo.url())),
        refused(&build_resource(&format!("{wrong}//base"))),
        refused(&build_resource(&format!("{right}//nope?token=canary3"))),
        refused(&build_of(&format!("components: ['{wrong}//part']\n"))),
        refused(&build_of(&format!(
            "resources: [map.yaml]\npatches: [{{path: '{wrong}/x'}}]\n"
        ))),
    ] {
        assert!(!stderr.contains("canary"), "{stderr}");
    }
    let dir = tempfile::tempdir().unwrap();
    let stderr = refused(&weir(dir.path(), &[&format!("{wrong}//base")]));
    assert!(
        stderr.contains("authentication failed") && !stderr.contains("canary"),
        "{stderr}"
    );
}

/// Serves files at their paths until the tests end.
fn serve(files: &'static [(&'static str, &'static str)]) -> String {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let head: Vec<String> = BufReader::new(stream.try_clone().unwrap())
                .lines()
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let path = head[0].split(' ').nth(1).unwrap();
            let answer = match files.iter().find(|(name, _)| *name == path) {
                Some((_, text)) if text.starts_with('/') => {
                    format!("302 Found\r\nLocation: {text}\r\nContent-Length: 0\r\n\r\n")
                }
                Some((_, text)) => format!("200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()),
                None => "500 Internal Server Error\r\nContent-Length: 0\r\n\r\n".to_owned(),
            };
            let _ = write!(
                stream,
                "HTTP/1.1 {}",
                answer.replacen("\r\n", "\r\nConnection: close\r\n", 1)
            );
        }
    });
    origin
}

#[test]
fn build_downloads_files_by_url() {
    let origin = serve(&[
        ("/map.yaml", MAP),
        ("/moved/map.yaml?v=1", "/map.yaml"),
        (
            "/patch.yaml",
            "- {op: replace, path: /metadata/name, value: other}\n",
        ),
    ]);
    let kustomization = format!(
        "resources: ['{origin}/moved/map.yaml?v=1']\n\
         patches: [{{path: '{origin}/patch.yaml', target: {{kind: ConfigMap}}, options: {{allowNameChange: true}}}}]\n"
    );
    assert_eq!(printed(&build_of(&kustomization)), named("other"));
    let kustomization = format!(
        "configMapGenerator: [{{name: g, files: ['a={origin}/map.yaml']}}]\n\
         generatorOptions: {{disableNameSuffixHash: true}}\n"
    );
    let built = printed(&build_of(&kustomization));
    assert!(
        built.contains("  a: |\n    apiVersion: v1\n") && built.contains("  name: g\n"),
        "{built}"
    );
    let stderr = refused(&build_resource(&format!("{origin}/nope")));
    assert!(
        stderr.contains("HTTP Error: status code 500 (Internal Server Error)"),
        "{stderr}"
    );
}
