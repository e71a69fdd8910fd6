//! `gitlab`: the status of a commit on GitLab.

use api::{Event, Secret};
use http::HeaderName;
use notification_specs::provider;
use serde_json::json;

use super::{
    git::{self, Listed, Repository, States, Status},
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

pub(super) const TOKEN: HeaderName = HeaderName::from_static("private-token");
const STATES: States = States {
    success: "success",
    failure: "failed",
    pending: None,
};

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::GITLAB,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let (repository, token) = (Repository::of(config)?, config.token_or_password()?);
    let Some(status) = Status::of(event, config, &STATES)? else {
        return Ok(Vec::new());
    };
    // The path of the project, or its number, is one segment.
    let project = repository.path.join("/");
    let project = ["api", "v4", "projects", &project];
    let path = |rest: &[&'_ str]| repository.at([&project[..], rest].concat());
    let mut list = path(&["repository", "commits", &status.commit, "statuses"])?.into_inner();
    list.query_pairs_mut()
        .append_pair("name", &status.id)
        .append_pair("sort", "desc");
    let mut asked = git::find(Secret::new(list));
    let body = json!({"state": status.state, "name": status.id, "description": status.description});
    let mut post = wire::json(path(&["statuses", &status.commit])?, &body)?;
    for request in [&mut asked, &mut post] {
        wire::secret_header(&mut request.headers, TOKEN, token)?;
    }
    let listed = Listed {
        list: "",
        id: "/name",
        state: "/status",
        description: "/description",
    };
    let id = status.id.clone();
    Ok(status.unless_same(asked, listed, id, post))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::{
        fixture::with,
        git::testing::{HASH, body, event, follow, printed},
    };

    #[test]
    fn gitlab_status_names_the_project_by_its_escaped_path() {
        let config = with("https://gitlab.example/team/sub/shop.git", "", "t0ken");
        let mut failure = event();
        (failure.severity, failure.reason) = (api::Severity::Error, "BuildFailed".into());
        let requests = follow(TYPE, &failure, &config, &["[]"]);
        let base = "https://gitlab.example/api/v4/projects/team%2Fsub%2Fshop";
        assert!(
            printed(&requests[0])
                .starts_with(&format!("GET {base}/repository/commits/{HASH}/statuses?name="))
        );
        assert_eq!(printed(&requests[1]), format!("POST {base}/statuses/{HASH}"));
        assert_eq!(requests[1].headers["private-token"], "t0ken");
        let expected =
            json!({"state": "failed", "name": "gitrepository/shop/0c9c2e41", "description": "build failed"});
        assert_eq!(body(&requests[1]), expected);
        let same = json!([{"status": "failed", "name": "gitrepository/shop/0c9c2e41", "description": "build failed"}]);
        assert_eq!(follow(TYPE, &failure, &config, &[&same.to_string()]).len(), 1);
    }
}
