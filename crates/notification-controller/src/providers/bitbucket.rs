//! `bitbucket`: the build status of a commit on Bitbucket Cloud.

use api::{Event, Secret};
use notification_specs::provider;
use serde_json::json;
use url::Url;

use super::{
    git::{self, Listed, Repository, States, Status},
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

const API: &str = "https://api.bitbucket.org/";
const STATES: States = States {
    success: "SUCCESSFUL",
    failure: "FAILED",
    pending: None,
};

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::BITBUCKET,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let repository = Repository::of(config)?;
    let (owner, name) = repository.owner_and_name()?;
    let login = config.required_token()?.split_once(':');
    let (user, password) = login
        .filter(|(_, password)| !password.contains(':'))
        .ok_or(Error::Config(
            "the key token in the Secret of spec.secretRef must have the form user:app-password",
        ))?;
    let Some(status) = Status::of(event, config, &STATES)? else {
        return Ok(Vec::new());
    };
    let api = Url::parse(API).map_err(|_| Error::BadAddress)?;
    let path = [
        "2.0",
        "repositories",
        owner,
        name,
        "commit",
        &status.commit,
        "statuses",
    ];
    let mut list = wire::at(&api, path)?;
    list.set_query(Some("sort=-updated_on&pagelen=50"));
    let mut asked = git::find(Secret::new(list));
    let body = json!({
        "key": status.key(), "state": status.state, "name": wire::short_name(event),
        "url": "https://bitbucket.org", "description": status.description,
    });
    let mut post = wire::json(
        Secret::new(wire::at(&api, path.into_iter().chain(["build"]))?),
        &body,
    )?;
    for request in [&mut asked, &mut post] {
        wire::basic(&mut request.headers, user, password)?;
    }
    let listed = Listed {
        list: "/values",
        id: "/key",
        state: "/state",
        description: "/description",
    };
    let key = status.key();
    Ok(status.unless_same(asked, listed, key, post))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::{
        fixture::with,
        git::testing::{HASH, body, event, follow, printed},
    };

    #[test]
    fn bitbucket_status_has_a_hash_as_key() {
        let config = with("https://bitbucket.org/team/shop", "", "user:s3cret");
        let requests = follow(TYPE, &event(), &config, &["{\"values\": []}"]);
        let base = format!("https://api.bitbucket.org/2.0/repositories/team/shop/commit/{HASH}/statuses");
        assert_eq!(printed(&requests[1]), format!("POST {base}/build"));
        assert_eq!(requests[1].headers["authorization"], "Basic dXNlcjpzM2NyZXQ=");
        let sent = body(&requests[1]);
        assert_eq!(sent["key"].as_str().unwrap().len(), 40);
        assert_eq!(
            (&sent["state"], &sent["name"]),
            (&"SUCCESSFUL".into(), &"gitrepository/shop".into())
        );
        let same = json!({"values": [sent]}).to_string();
        assert_eq!(follow(TYPE, &event(), &config, &[&same]).len(), 1);
        for token in ["", "user", "a:b:c"] {
            assert!(steps(&event(), &with("https://bitbucket.org/team/shop", "", token)).is_err());
        }
    }
}
