//! Tables in the layout of the original's command line.

/// A table: cells are padded to the width of their column and separated by tabs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
    widths: Vec<usize>,
}

impl Table {
    /// Makes a table; without names of columns it has no header.
    pub fn new<S: AsRef<str>>(head: impl IntoIterator<Item = S>) -> Self {
        let head: Vec<String> = head
            .into_iter()
            .map(|name| name.as_ref().to_uppercase())
            .collect();
        let mut table = Self::default();
        table.fit(&head);
        table.head = head;
        table
    }

    /// Adds a row. Control characters, which could change the display of a terminal, are replaced.
    pub fn push(&mut self, cells: Vec<String>) {
        let cells: Vec<String> = cells.into_iter().map(printable).collect();
        self.fit(&cells);
        self.rows.push(cells);
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn fit(&mut self, cells: &[String]) {
        for (column, cell) in cells.iter().enumerate() {
            let width = cell.split('\n').map(|line| line.chars().count()).max();
            match self.widths.get_mut(column) {
                Some(known) => *known = (*known).max(width.unwrap_or_default()),
                None => self.widths.push(width.unwrap_or_default()),
            }
        }
    }

    /// Adds the text of the table. Cells of several lines make several lines.
    fn add_row(&self, cells: &[String], last: char, text: &mut String) {
        let lines = cells.iter().map(|cell| cell.split('\n').count()).max();
        for line in 0..lines.unwrap_or_default() {
            for (column, cell) in cells.iter().enumerate() {
                let part = cell.split('\n').nth(line).unwrap_or_default();
                text.push_str(part);
                let width = self.widths.get(column).copied().unwrap_or_default();
                let padding = width.saturating_sub(part.chars().count());
                text.extend(std::iter::repeat_n(' ', padding));
                text.push(if column + 1 == cells.len() { last } else { '\t' });
            }
            text.push('\n');
        }
    }

    /// Returns the text of a row that is printed after the table, in its columns.
    pub fn later(&mut self, cells: Vec<String>) -> String {
        let cells: Vec<String> = cells.into_iter().map(printable).collect();
        self.fit(&cells);
        let mut text = String::new();
        self.add_row(&cells, '\t', &mut text);
        text
    }

    /// Returns the header and the rows.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        if !self.head.is_empty() {
            self.add_row(&self.head, ' ', &mut text);
        }
        for row in &self.rows {
            self.add_row(row, '\t', &mut text);
        }
        text
    }
}

fn printable(cell: String) -> String {
    if !cell.contains(|c: char| c.is_control() && c != '\n') {
        return cell;
    }
    let replaced = |c: char| {
        if c.is_control() && c != '\n' {
            '\u{fffd}'
        } else {
            c
        }
    };
    cell.chars().map(replaced).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn cells_are_padded_and_separated_by_tabs() {
        let mut table = Table::new(["Name", "Ready", "Message"]);
        table.push(row(&["podinfo", "True", "x\u{1b}y"]));
        table.push(row(&["a", "False", "one\ntwo lines"]));
        assert_eq!(
            table.text(),
            "NAME   \tREADY\tMESSAGE   \npodinfo\tTrue \tx\u{fffd}y      \t\na      \tFalse\tone      \t\n       \t     \ttwo lines\t\n"
        );
    }

    #[test]
    fn tables_without_names_have_no_header() {
        let mut table = Table::new([""; 0]);
        assert!(table.is_empty());
        table.push(row(&["a", "b"]));
        assert_eq!(table.text(), "a\tb\t\n");
        assert_eq!(table.later(row(&["x", "long"])), "x\tlong\t\n");
        assert_eq!(table.later(row(&["y", "z"])), "y\tz   \t\n");
    }
}
