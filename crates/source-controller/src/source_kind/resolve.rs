//! From an object to the current revision of its source.

use api::{Fault, revision::Style};

use super::{object::SourceObject, secrets::SourceSecrets};
use crate::blocking::Job;

/// Resolves an object to a revision.
pub(crate) trait Resolve: SourceObject {
    /// Source to fetch and its credentials, from the spec and its Secrets.
    type Request: Clone + Send + Sync + 'static;
    /// The revision that the request resolves to.
    type Resolved: Clone + Send + Sync + 'static;

    /// Returns the request of an object. Pure; may take a second where a key has a password. Fails with a fault that names the field or the
    /// key of the Secret.
    fn request(object: &Self::Object, secrets: &SourceSecrets) -> Result<Self::Request, Fault>;

    /// Returns host and port of the server that is asked. Servers of a namespace share its permits to fetch. Pure.
    fn server(request: &Self::Request) -> String;

    /// Resolves the request to a revision, on a thread of its own. Called in every pass, so it should be cheap. Fails with a fault in the
    /// words of conditions.
    fn resolve(&self, request: &Self::Request, job: &Job) -> Result<Self::Resolved, Fault>;

    /// Returns the revision for status, conditions and events. Pure.
    fn revision(resolved: &Self::Resolved, style: Style) -> String;

    /// Returns the file name of the artifact. Pure.
    fn file_name(resolved: &Self::Resolved) -> String;
}
