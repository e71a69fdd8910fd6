//! `bitbucketserver`: the build status of a commit on Bitbucket Server or Data Center.

use api::{Event, Secret};
use http::{HeaderName, HeaderValue};
use notification_specs::provider;
use serde_json::{Value, json};

use super::{
    git::{self, Repository, States, Status},
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

const CHECK: HeaderName = HeaderName::from_static("x-atlassian-token");
const WITH: HeaderName = HeaderName::from_static("x-requested-with");
const STATES: States = States {
    success: "SUCCESSFUL",
    failure: "FAILED",
    pending: None,
};

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::BITBUCKETSERVER,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    // The address must be a clone URL over http: it has the root path of the server.
    let address = config.url()?.into_inner();
    let repository = Repository::of(config)?;
    let at = repository.path.iter().position(|part| part == "scm");
    let (root, rest) = repository.path.split_at(at.unwrap_or_default());
    let [_, project, name] = rest else {
        return Err(Error::Config(
            "the address is not of the form https://host/scm/project/repository.git",
        ));
    };
    if config.token().is_none() && config.login().is_none() {
        return Err(Error::Config(
            "no login: set the key token, or username and password, in the Secret of spec.secretRef",
        ));
    }
    let Some(status) = Status::of(event, config, &STATES)? else {
        return Ok(Vec::new());
    };
    let path = [
        "rest",
        "api",
        "latest",
        "projects",
        project,
        "repos",
        name,
        "commits",
        &status.commit,
        "builds",
    ];
    let url = wire::at(&repository.server, root.iter().map(String::as_str).chain(path))?;
    let title = format!("{} [{}]", wire::short_name(event), status.description);
    let (key, mut clone_url) = (status.key(), address);
    let bare = clone_url
        .set_username("")
        .and_then(|()| clone_url.set_password(None));
    bare.map_err(|()| Error::BadAddress)?;
    let body = json!({
        "key": key, "state": status.state, "name": title, "description": status.description, "url": clone_url.as_str(),
    });
    let mut find = url.clone();
    find.query_pairs_mut().append_pair("key", &key);
    let mut asked = git::find(Secret::new(find));
    let mut post = wire::json(Secret::new(url), &body)?;
    for request in [&mut asked, &mut post] {
        request
            .headers
            .insert(CHECK, HeaderValue::from_static("no-check"));
        request
            .headers
            .insert(WITH, HeaderValue::from_static("XMLHttpRequest"));
        match (config.token(), config.login()) {
            (None, Some((user, password))) => wire::basic(&mut request.headers, user, password)?,
            _ => wire::bearer(&mut request.headers, config)?,
        }
    }
    let next = move |body: &[u8]| {
        let known: Value = match body {
            [] => Value::Null,
            body => serde_json::from_slice(body).map_err(|_| Error::Answer)?,
        };
        let same = known.get("state") == Some(&status.state.into())
            && known.get("name") == Some(&title.as_str().into())
            && known.get("description") == Some(&status.description.as_str().into());
        Ok(if same { Vec::new() } else { vec![Step::Send(post)] })
    };
    Ok(vec![Step::Ask(asked, Box::new(next))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::{
        fixture::with,
        git::testing::{HASH, body, event, follow, printed as line},
    };

    #[test]
    fn bitbucketserver_status_is_below_the_root_of_the_server() {
        let address = "https://b.example/root/scm/prj/shop.git";
        let mut config = with(address, "", "");
        (config.username, config.password) = (Some("u".into()), Some(Secret::new("p".into())));
        let requests = follow(TYPE, &event(), &config, &[""]);
        let url =
            format!("https://b.example/root/rest/api/latest/projects/prj/repos/shop/commits/{HASH}/builds");
        assert!(line(&requests[0]).starts_with(&format!("GET {url}?key=")));
        assert_eq!(line(&requests[1]), format!("POST {url}"));
        assert_eq!(requests[1].headers["authorization"], "Basic dTpw");
        assert_eq!(requests[1].headers["x-atlassian-token"], "no-check");
        let sent = body(&requests[1]);
        assert_eq!(
            (&sent["name"], &sent["url"]),
            (&"gitrepository/shop [new artifact]".into(), &address.into())
        );
        assert_eq!(follow(TYPE, &event(), &config, &[&sent.to_string()]).len(), 1);
        config.token = Some(Secret::new("t0ken".into()));
        assert_eq!(
            follow(TYPE, &event(), &config, &[""])[1].headers["authorization"],
            "Bearer t0ken"
        );
        for address in [
            "https://b.example/projects/prj/repos/shop",
            "ssh://git@b.example/scm/prj/shop.git",
        ] {
            assert!(steps(&event(), &with(address, "", "t")).is_err(), "{address}");
        }
    }
}
