//! The token service of an S3-compatible server, for users of LDAP.

use axum::{
    http::StatusCode,
    response::{IntoResponse as _, Response},
};

use super::Asked;
use crate::s3::{ACCESS_KEY, SECRET_KEY};

pub const LDAP_USER: &str = "ldap-user";
pub const LDAP_PASSWORD: &str = "s3cret-of-ldap";

/// Answers a request for temporary keys with the keys of an S3 server.
pub(super) fn answer(asked: &Asked) -> Response {
    let is_known = asked.form("Action") == "AssumeRoleWithLDAPIdentity"
        && asked.form("Version") == "2011-06-15"
        && asked.form("LDAPUsername") == LDAP_USER
        && asked.form("LDAPPassword") == LDAP_PASSWORD;
    if !is_known {
        let body = "<ErrorResponse><Error><Code>InvalidParameterValue</Code><Message>LDAP server error: wrong password\
                    </Message></Error></ErrorResponse>";
        return (StatusCode::BAD_REQUEST, body).into_response();
    }
    format!(
        "<AssumeRoleWithLDAPIdentityResponse><AssumeRoleWithLDAPIdentityResult><Credentials>\
         <AccessKeyId>{ACCESS_KEY}</AccessKeyId><SecretAccessKey>{SECRET_KEY}</SecretAccessKey><SessionToken>session</SessionToken>\
         </Credentials></AssumeRoleWithLDAPIdentityResult></AssumeRoleWithLDAPIdentityResponse>"
    )
    .into_response()
}
