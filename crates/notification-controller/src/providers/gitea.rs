//! `gitea`: the status of a commit on Gitea or Forgejo.

use api::{Event, Secret};
use http::header;
use notification_specs::provider;
use serde_json::json;

use super::{
    git::{self, Listed, Repository, States, Status},
    interface::{Config, ProviderType, Request, Step},
    wire,
};
use crate::error::Error;

const STATES: States = States {
    success: "success",
    failure: "failure",
    pending: Some("pending"),
};

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::GITEA,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let repository = Repository::of(config)?;
    let (owner, name) = repository.owner_and_name()?;
    let Some(status) = Status::of(event, config, &STATES)? else {
        return Ok(Vec::new());
    };
    let path = |rest: &[&'_ str]| repository.at([&["api", "v1", "repos", owner, name], rest].concat());
    let mut list = path(&["commits", &status.commit, "statuses"])?.into_inner();
    list.set_query(Some("sort=recentupdate&limit=50"));
    let asked = login(git::find(Secret::new(list)), config)?;
    let body = json!({
        "state": status.state, "target_url": "", "description": status.description, "context": status.id,
    });
    let post = login(wire::json(path(&["statuses", &status.commit])?, &body)?, config)?;
    let listed = Listed {
        list: "",
        id: "/context",
        state: "/status",
        description: "/description",
    };
    let id = status.id.clone();
    Ok(status.unless_same(asked, listed, id, post))
}

pub(super) fn login(mut request: Request, config: &Config) -> Result<Request, Error> {
    let token = format!("token {}", config.token_or_password()?);
    wire::secret_header(&mut request.headers, header::AUTHORIZATION, &token)?;
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::{
        fixture::with,
        git::testing::{HASH, body, event, follow, printed},
    };

    #[test]
    fn gitea_status_is_pending_while_work_is_in_progress() {
        let config = with("http://gitea.example:3000/team/shop", "", "t0ken");
        let mut progress = event();
        progress.reason = "Progressing".into();
        let requests = follow(TYPE, &progress, &config, &["[]"]);
        let base = "http://gitea.example:3000/api/v1/repos/team/shop";
        assert_eq!(printed(&requests[1]), format!("POST {base}/statuses/{HASH}"));
        assert_eq!(requests[1].headers["authorization"], "token t0ken");
        assert_eq!(body(&requests[1])["state"], "pending");
        let same = json!([{"status": "success", "context": "gitrepository/shop/0c9c2e41", "description": "new artifact"}]);
        assert_eq!(follow(TYPE, &event(), &config, &[&same.to_string()]).len(), 1);
    }
}
