//! Locations of times as templates see them.

use std::{any::Any, rc::Rc};

use tree::Budget;

use super::{Location, Time};
use crate::{
    Object, Value,
    template::{FormatError, FunctionError, Signature},
};

pub(super) const TYPE: &str = "*time.Location";

/// The zone of a time, which has one offset at all times: there are no others in templates.
#[derive(Debug)]
pub(super) struct Zone {
    location: Location,
    name: Rc<str>,
    offset: i32,
}

impl Zone {
    pub(super) fn new(time: &Time) -> Self {
        Self {
            location: time.location,
            name: time.zone.clone(),
            offset: time.offset,
        }
    }

    pub(super) fn of(time: &Time) -> Value {
        Value::Object(Rc::new(Self::new(time)))
    }

    /// Returns true if Go has one pointer for both: it shares zones without a name that have whole hours, up to 12.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.location == other.location
            && (self.location != Location::Fixed
                || self.name.is_empty()
                    && other.name.is_empty()
                    && self.offset == other.offset
                    && self.offset % 3600 == 0
                    && self.offset.abs() <= 12 * 3600)
    }

    /// Returns the zone of an argument; `nil` has none.
    pub(super) fn given(argument: Option<&Value>) -> Option<&Self> {
        match argument {
            Some(Value::Object(object)) => object.as_any()?.downcast_ref(),
            _ => None,
        }
    }

    pub(super) fn apply(&self, time: &Time) -> Value {
        Time {
            location: self.location,
            zone: self.name.clone(),
            offset: self.offset,
            ..time.clone()
        }
        .object()
    }
}

impl Zone {
    fn written(&self) -> String {
        match self.location {
            Location::Local => "Local".to_owned(),
            Location::Utc => "UTC".to_owned(),
            Location::Fixed => self.name.to_string(),
        }
    }
}

impl Object for Zone {
    fn type_name(&self) -> &str {
        TYPE
    }

    fn kind_name(&self) -> &'static str {
        "ptr"
    }

    fn field(&self, _: &str) -> Option<Value> {
        None
    }

    fn signature(&self, name: &str) -> Option<Signature> {
        (name == "String").then(|| Signature::fixed(&[]))
    }

    fn call(&self, name: &str, _: &[Value]) -> Option<Result<Value, FunctionError>> {
        self.signature(name)?;
        Some(Ok(Value::string(self.written())))
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }

    fn equals(&self, other: &dyn Object) -> bool {
        let other = other.as_any().and_then(<dyn Any>::downcast_ref::<Self>);
        other.is_some_and(|other| self.is(other))
    }

    fn data(&self) -> Option<Value> {
        Some(Value::dict::<&str>([]))
    }

    fn print(&self, _: &Budget) -> Result<String, FormatError> {
        Ok(self.written())
    }
}
