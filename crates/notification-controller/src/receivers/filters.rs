//! The CEL filters of a Receiver.

use api::notification::ReceiverSpec;
use cel::{EvalError, Program, Scope, Value, Variables};

use super::oidc;

const SCOPE: Scope<'_> = Scope::Declared(&["res", "req", "claims"]);
/// The scope of Receivers whose senders have no claims.
const WITHOUT_CLAIMS: Scope<'_> = Scope::Declared(&["res", "req"]);

fn scope(spec: &ReceiverSpec) -> Scope<'static> {
    match spec.type_.as_str() {
        oidc::TYPE => SCOPE,
        _ => WITHOUT_CLAIMS,
    }
}

/// Returns the first invalid filter, with the reason.
pub(super) fn broken(spec: &ReceiverSpec) -> Option<String> {
    let own = spec
        .resource_filter
        .iter()
        .map(|text| ("spec.resourceFilter".to_owned(), text));
    let each = spec.resources.iter().enumerate().filter_map(|(at, resource)| {
        let text = resource.filter.as_ref()?;
        Some((format!("spec.resources[{at}].filter"), text))
    });
    own.chain(each).find_map(|(path, text)| {
        let why = Program::compile_bool(text, scope(spec)).err()?;
        Some(format!("{path}: {why}"))
    })
}

#[derive(Debug)]
pub(super) struct Filters {
    all: Option<Program>,
    each: Vec<Option<Program>>,
    request: Value,
    claims: Value,
}

impl Filters {
    pub(super) fn wanted(spec: &ReceiverSpec) -> bool {
        spec.resource_filter.is_some() || spec.resources.iter().any(|resource| resource.filter.is_some())
    }

    /// Compiles the filters for a request; `None` if one does not compile.
    pub(super) fn new(spec: &ReceiverSpec, request: Value, claims: Value) -> Option<Self> {
        let compile = |text: &Option<String>| match text {
            Some(text) => Program::compile_bool(text, scope(spec)).map(Some),
            None => Ok(None),
        };
        let each = spec.resources.iter().map(|resource| compile(&resource.filter));
        Some(Self {
            all: compile(&spec.resource_filter).ok()?,
            each: each.collect::<Result<_, _>>().ok()?,
            request,
            claims,
        })
    }

    /// Returns true if the resource with this index in the spec has a filter.
    pub(super) fn judges(&self, at: usize) -> bool {
        self.all.is_some() || self.each.get(at).is_some_and(Option::is_some)
    }

    /// Returns true if an object passes the filters of the resource with this index in the spec.
    pub(super) fn pass(&self, at: usize, object: Value) -> Result<bool, EvalError> {
        let variables = Variables::new()
            .with("res", object)
            .with("req", self.request.clone())
            .with("claims", self.claims.clone());
        for filter in [self.all.as_ref(), self.each.get(at).and_then(Option::as_ref)] {
            if let Some(filter) = filter
                && !filter.is_true(&variables)?
            {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
