//! Paths of charts inside other charts.

use std::{cell::RefCell, rc::Rc};

/// The name of a chart, and its parent.
///
/// quirk: copies of a chart share their subcharts with the original. Subcharts that are not a dependency belong to the original,
/// not to its alias, and are rendered once.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChartPath(Rc<ChartNode>);

#[derive(Debug, Default)]
struct ChartNode {
    name: String,
    above: RefCell<Option<ChartPath>>,
}

impl ChartPath {
    pub(crate) fn new(name: &str) -> Self {
        Self(Rc::new(ChartNode {
            name: name.to_owned(),
            above: RefCell::default(),
        }))
    }

    pub(crate) fn put_into(&self, above: &Self) {
        self.0.above.replace(Some(above.clone()));
    }

    /// Returns the names of all parents and its own, as a path.
    pub(crate) fn path(&self) -> String {
        match &*self.0.above.borrow() {
            Some(above) => format!("{}/charts/{}", above.path(), self.0.name),
            None => self.0.name.clone(),
        }
    }
}
