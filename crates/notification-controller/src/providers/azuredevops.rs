//! `azuredevops`: the status of a commit on Azure DevOps.

use api::{Event, Secret};
use cloud::azure;
use http::header;
use notification_specs::provider;
use serde_json::json;

use super::{
    git::{self, Listed, Repository, States, Status},
    interface::{Config, ProviderType, Step},
    wire,
};
use crate::error::Error;

const STATES: States = States {
    success: "succeeded",
    failure: "error",
    pending: None,
};

pub(super) const TYPE: ProviderType = ProviderType {
    rules: provider::AZUREDEVOPS,
    steps,
};

fn steps(event: &Event, config: &Config) -> Result<Vec<Step>, Error> {
    let repository = Repository::of(config)?;
    let [organization, project, git, name] = &repository.path[..] else {
        return Err(FORM);
    };
    if git != "_git" {
        return Err(FORM);
    }
    let identity = config.identity_for(&repository.server, azure::is_devops)?;
    if identity.is_none() {
        config.required_token()?;
    }
    let Some(status) = Status::of(event, config, &STATES)? else {
        return Ok(Vec::new());
    };
    let path = [
        organization,
        project,
        "_apis",
        "git",
        "repositories",
        name,
        "commits",
        &status.commit,
        "statuses",
    ];
    let mut url = repository.at(path)?.into_inner();
    url.set_query(Some("api-version=7.0"));
    let mut find = url.clone();
    find.query_pairs_mut().append_pair("latestOnly", "true");
    let mut asked = git::find(Secret::new(find));
    let genre = match event.metadata.get("summary") {
        Some(summary) => format!("fluxcd:{summary}"),
        None => "fluxcd".to_owned(),
    };
    let context = json!({"genre": genre, "name": status.id});
    let body = json!({"state": status.state, "description": status.description, "context": context});
    let mut post = wire::json(Secret::new(url), &body)?;
    for request in [&mut asked, &mut post] {
        match &identity {
            Some(bearer) => wire::secret_header(&mut request.headers, header::AUTHORIZATION, bearer)?,
            None => wire::basic(&mut request.headers, "", config.required_token()?)?,
        }
    }
    let listed = Listed {
        list: "/value",
        id: "/context/name",
        state: "/state",
        description: "/description",
    };
    let id = status.id.clone();
    Ok(status.unless_same(asked, listed, id, post))
}

const FORM: Error =
    Error::Config("the address is not of the form https://host/organization/project/_git/repository");

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::{
        fixture::with,
        git::testing::{HASH, body, event, follow, printed},
    };

    #[test]
    fn azuredevops_status_has_a_genre() {
        let config = with("https://dev.azure.com/org/project/_git/shop", "", "t0ken");
        let requests = follow(TYPE, &event(), &config, &["{\"value\": []}"]);
        let base =
            format!("https://dev.azure.com/org/project/_apis/git/repositories/shop/commits/{HASH}/statuses");
        assert_eq!(printed(&requests[1]), format!("POST {base}?api-version=7.0"));
        assert_eq!(requests[1].headers["authorization"], "Basic OnQwa2Vu");
        let expected = json!({
            "state": "succeeded", "description": "new artifact",
            "context": {"genre": "fluxcd:shop of the team", "name": "gitrepository/shop/0c9c2e41"},
        });
        assert_eq!(body(&requests[1]), expected);
        let same = json!({"value": [expected]}).to_string();
        assert_eq!(follow(TYPE, &event(), &config, &[&same]).len(), 1);
        for address in [
            "https://dev.azure.com/org/project/shop",
            "https://dev.azure.com/org/project/git/shop",
        ] {
            assert!(steps(&event(), &with(address, "", "t")).is_err());
        }
    }
}
