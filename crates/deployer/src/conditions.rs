//! The conditions of an object, whatever its kind. Pure.

use api::{
    Condition, Time,
    conditions::{ConditionWriter, HasConditions},
};

use crate::kind::DeployObject;

/// Starts to write the conditions of a status, of the generation of its object.
pub fn write<'a, O>(status: &'a mut O::Status, object: &O, now: &'a Time) -> ConditionWriter<'a>
where
    O: DeployObject,
    O::Status: HasConditions,
{
    ConditionWriter::new(status.conditions_mut(), object.meta().generation, now)
}

/// Returns the conditions of the stored status.
pub fn past<O>(object: &O) -> &[Condition]
where
    O: DeployObject,
    O::Status: HasConditions,
{
    object.status().map_or(&[], |status| status.conditions())
}
