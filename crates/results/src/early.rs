//! The errors of deployments that ended early.

use super::{CommandResult, ObjectError};

impl CommandResult {
    pub fn note_cancellation(&mut self) {
        let applied = self.applied();
        self.errors.push(ObjectError::general(format!(
            "the work was interrupted after {applied} objects were applied; the others were not touched"
        )));
    }

    pub fn note_interruption(&mut self) {
        let applied = self.applied();
        self.errors.push(ObjectError::general(format!(
            "interrupted after {applied} objects were applied, because there is something newer to deploy: the rest was left out"
        )));
    }

    fn applied(&self) -> usize {
        self.objects.iter().filter(|object| object.is_applied).count()
    }
}
