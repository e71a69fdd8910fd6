//! Tests of the requests, and of whole conversations with a local web server.

use serde_json::json;
use testkit::{WebServer, web::Page};

use super::*;

fn repository(service: Service) -> HostedRepository {
    HostedRepository {
        service,
        host: "git.example.com".to_owned(),
        owner: "platform".to_owned(),
        name: "fleet".to_owned(),
        personal: false,
        visibility: Visibility::Private,
        branch: "main".to_owned(),
    }
}

#[test]
fn requests_are_those_of_each_service() {
    let lines = |service, group| {
        let repository = repository(service);
        let calls = [
            repository.find(),
            repository.create(group),
            repository.keys(2),
            repository.add_key("t", "ssh-ed25519 AAAA", true),
            repository.delete_key(7),
        ];
        let line = |call: Call| {
            let body = call.body.map(|body| format!(" {body}")).unwrap_or_default();
            format!("{} {}{body}\n", call.method, call.path)
        };
        calls.map(line).concat()
    };
    assert_eq!(
        lines(Service::GitHub, None),
        "GET /repos/platform/fleet\n\
         POST /orgs/platform/repos {\"name\":\"fleet\",\"description\":\"Manifests that Weir applies\",\"private\":true}\n\
         GET /repos/platform/fleet/keys?per_page=50&page=2\n\
         POST /repos/platform/fleet/keys {\"title\":\"t\",\"key\":\"ssh-ed25519 AAAA\",\"read_only\":true}\n\
         DELETE /repos/platform/fleet/keys/7\n"
    );
    assert_eq!(
        lines(Service::GitLab, Some(3)),
        "GET /projects/platform%2Ffleet\n\
         POST /projects {\"name\":\"fleet\",\"description\":\"Manifests that Weir applies\",\"path\":\"fleet\",\"visibility\":\"private\",\
         \"namespace_id\":3,\"default_branch\":\"main\"}\n\
         GET /projects/platform%2Ffleet/deploy_keys?per_page=50&page=2\n\
         POST /projects/platform%2Ffleet/deploy_keys {\"title\":\"t\",\"key\":\"ssh-ed25519 AAAA\",\"can_push\":false}\n\
         DELETE /projects/platform%2Ffleet/deploy_keys/7\n"
    );
    let mut personal = repository(Service::Gitea);
    personal.personal = true;
    assert_eq!(personal.create(None).path, "/user/repos");
    assert_eq!(
        personal.keys(1).path,
        "/repos/platform/fleet/keys?limit=50&page=1"
    );
    assert_eq!(personal.url(), "https://git.example.com/platform/fleet.git");
}

#[test]
fn names_that_change_the_address_are_refused() {
    let refused = |change: fn(&mut HostedRepository)| {
        let mut changed = repository(Service::GitHub);
        change(&mut changed);
        changed.check().is_err()
    };
    assert!(repository(Service::GitHub).check().is_ok());
    assert!(refused(|own| own.owner = "a/b".to_owned()));
    assert!(refused(|own| own.owner = "..?x".to_owned()));
    assert!(refused(|own| own.name = "platform/fleet".to_owned()));
    assert!(refused(|own| own.name = String::new()));
    assert!(refused(|own| own.host = "user@host".to_owned()));
    let mut group = repository(Service::GitLab);
    group.owner = "a/b".to_owned();
    assert!(group.check().is_ok());
}

#[test]
fn teams_get_access_in_the_way_of_each_service() {
    let line = |service, text: &str, group| {
        let call = repository(service).add_team(&Team::parse(service, text).unwrap(), group);
        let body = call.body.map(|body| format!(" {body}")).unwrap_or_default();
        format!("{} {}{body}", call.method, call.path)
    };
    assert_eq!(
        line(Service::GitHub, "ops", None),
        "PUT /orgs/platform/teams/ops/repos/platform/fleet {\"permission\":\"maintain\"}"
    );
    assert_eq!(
        line(Service::GitLab, "org/ops:push", Some(4)),
        "POST /projects/platform%2Ffleet/share {\"group_id\":4,\"group_access\":30}"
    );
    assert_eq!(
        line(Service::Gitea, "ops", None),
        "PUT /repos/platform/fleet/teams/ops"
    );
    for (service, text) in [
        (Service::GitHub, "a/b"),
        (Service::GitHub, "ops:own"),
        (Service::Gitea, "ops:pull"),
        (Service::GitLab, "?x"),
    ] {
        assert!(Team::parse(service, text).is_err(), "{text}");
    }
}

#[tokio::test]
async fn teams_that_have_access_are_no_failure() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = WebServer::start().unwrap();
    server.page("/api/groups/ops", content(&json!({ "id": 4 })));
    server.page(
        "/api/projects/platform%2Ffleet/share",
        content(&json!({ "id": 5 })),
    );
    let hosting = with(&server, Service::GitLab).await;
    let team = |name| Team::parse(Service::GitLab, name).unwrap();
    hosting.add_team(&team("ops")).await.unwrap();
    let error = hosting.add_team(&team("none")).await.unwrap_err();
    assert!(
        error.to_string().contains("the team 'none' is not found"),
        "{error}"
    );
}

async fn with(server: &WebServer, service: Service) -> Hosting {
    let token = Secret::new("t0ken".to_owned());
    let hosting = Hosting::new(repository(service), token, None).unwrap();
    hosting.at(server.url("api").as_str())
}

fn content(json: &Json) -> Page {
    Page::Content(json.to_string().into())
}

#[tokio::test]
async fn missing_repository_and_key_are_created() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = WebServer::start().unwrap();
    server.page("/api/groups/platform", content(&json!({ "id": 3 })));
    server.page("/api/projects", content(&json!({ "id": 5 })));
    server.page("/api/projects/platform%2Ffleet/deploy_keys", content(&json!([])));
    let hosting = with(&server, Service::GitLab).await;
    assert!(hosting.create_repository().await.unwrap());
    assert!(hosting.add_key("flux", "ssh-ed25519 AAAA", true).await.unwrap());
    let asked: Vec<String> = server.asked().into_iter().map(|asked| asked.path).collect();
    assert_eq!(
        asked,
        [
            "/api/projects/platform%2Ffleet",
            "/api/groups/platform?with_projects=false",
            "/api/projects",
            "/api/projects/platform%2Ffleet/deploy_keys?per_page=50&page=1",
            "/api/projects/platform%2Ffleet/deploy_keys",
        ]
    );
}

#[tokio::test]
async fn present_repository_and_key_stay() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = WebServer::start().unwrap();
    server.page("/api/repos/platform/fleet", content(&json!({ "id": 1 })));
    let keys = json!([{ "id": 9, "title": "flux", "key": "ssh-ed25519 AAAA comment" }]);
    server.page("/api/repos/platform/fleet/keys", content(&keys));
    server.page("/api/repos/platform/fleet/keys/9", content(&Json::Null));
    let hosting = with(&server, Service::Gitea).await;
    assert!(!hosting.create_repository().await.unwrap());
    assert!(!hosting.add_key("flux", "ssh-ed25519 AAAA", true).await.unwrap());
    assert_eq!(
        server.asked().first().unwrap().authorization.as_deref(),
        Some("token t0ken")
    );
    // Another key with the title is replaced.
    assert!(hosting.add_key("flux", "ssh-ed25519 BBBB", true).await.unwrap());
    let asked: Vec<String> = server.asked().into_iter().map(|asked| asked.path).collect();
    assert!(
        asked.contains(&"/api/repos/platform/fleet/keys/9".to_owned()),
        "{asked:?}"
    );
}

#[tokio::test]
async fn refused_token_is_named_by_its_variable() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let server = WebServer::start().unwrap();
    server.login("somebody", "else");
    let error = with(&server, Service::GitHub)
        .await
        .create_repository()
        .await
        .unwrap_err();
    let error = format!("{error:#}");
    assert!(
        error.contains("set $GITHUB_TOKEN") && !error.contains("t0ken"),
        "{error}"
    );
}
