//! Random expressions, generated from rows.

use testkit::fuzz::Random;

use super::{containers, table, template, words};

/// The names in scope besides the variables, with the letter of their sort.
pub(super) type Scope = Vec<(String, char)>;

pub(super) fn expression(random: &mut Random, scope: &Scope, sort: char, depth: usize) -> String {
    // Another sort now and then.
    let sort = if "kvft".contains(sort) || !random.one_in(50) {
        sort
    } else {
        *random.pick(&['i', 'n', 's', 'l', 'd', 'a', 'b'])
    };
    if sort == 'a' && random.below(3) > 0 {
        let sort = *random.pick(&['s', 'i', 'n', 'l', 'd', 'b']);
        return expression(random, scope, sort, depth);
    }
    if depth == 0 || random.below(4) == 0 {
        return leaf(random, scope, sort);
    }
    let rows = match sort {
        'i' => table::INTS,
        'n' => table::NUMBERS,
        's' => containers::TEXTS,
        'l' => containers::LISTS,
        'd' => containers::MAPS,
        'b' => table::TRUTHS,
        'a' => table::ANY,
        _ => return leaf(random, scope, sort),
    };
    let row = *random.pick(rows);
    fill(random, scope, row, depth - 1)
}

fn leaf(random: &mut Random, scope: &Scope, sort: char) -> String {
    let named: Vec<&str> = scope
        .iter()
        .filter(|(_, known)| *known == sort || sort == 'a' || *known == 'a')
        .map(|(name, _)| name.as_str())
        .collect();
    if !named.is_empty() && random.one_in(3) {
        return (*random.pick(&named)).to_owned();
    }
    let words = match sort {
        's' => return words::text(random),
        'i' => words::INTS,
        'k' => words::SMALL,
        'n' => words::NUMBERS,
        'l' => words::LISTS,
        'd' => words::MAPS,
        'b' => words::TRUTHS,
        _ => words::ANY,
    };
    random.pick(words).to_string()
}

fn fill(random: &mut Random, scope: &Scope, row: &str, depth: usize) -> String {
    let mut out = String::new();
    let mut parts = row.split('$');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let sort = part.chars().next().unwrap_or('a');
        let rest = &part[1..];
        match sort {
            'v' => out.push_str(random.pick::<&str>(table::ATTRIBUTES)),
            'q' => out.push_str(&words::quoted(&template::inner(random, scope))),
            'f' | 't' => {
                let names = if sort == 'f' { table::FILTERS } else { table::TESTS };
                let name = *random.pick(names);
                match rest.strip_prefix('2') {
                    Some(rest) => {
                        out.push_str(if name.starts_with(|c: char| c.is_ascii_alphabetic()) {
                            name
                        } else {
                            "eq"
                        });
                        out.push_str(rest);
                        continue;
                    }
                    None => out.push_str(&format!("'{name}'")),
                }
            }
            sort => {
                let made = expression(random, scope, sort, depth);
                let atom = made
                    .chars()
                    .all(|c| c.is_alphanumeric() || matches!(c, '_' | '.'))
                    && !made.starts_with(|c: char| c.is_ascii_digit());
                let literal = made.starts_with(['\'', '[']) && !made.contains([' ', '|'])
                    || made.chars().all(|c| c.is_ascii_digit());
                let bare = rest.is_empty() || rest.starts_with([',', ')', ']', '}', ':']);
                // Sometimes without brackets, to test operator precedence.
                if atom
                    || (bare && out.ends_with([' ', '(', '['])) && !out.ends_with("- ") && random.one_in(3)
                    || literal && random.flag()
                    || random.one_in(25)
                {
                    out.push_str(&made);
                } else {
                    out.push_str(&format!("({made})"));
                }
            }
        }
        out.push_str(rest);
    }
    out
}
