//! The natural order of keys in go-yaml's output.

/// Sorts `items` by key: letters after other characters, digits by the number that they form. The order isn't transitive
/// (`12` < `1x` < `2` < `12`), so `sort_by` may refuse it. Short lists are sorted by insertion, as Go does, which gives the
/// same result even then.
pub(super) fn sort<T>(items: Vec<T>, key: impl Fn(&T) -> &str + Copy) -> Vec<T> {
    if items.len() <= 12 {
        return insertion_sort(items, key);
    }
    let mut left = items;
    let right = left.split_off(left.len() / 2);
    merge(sort(left, key), sort(right, key), key)
}

fn insertion_sort<T>(items: Vec<T>, key: impl Fn(&T) -> &str) -> Vec<T> {
    let mut sorted: Vec<T> = Vec::with_capacity(items.len());
    for item in items {
        let behind = sorted
            .iter()
            .rev()
            .take_while(|other| less(key(&item), key(other)))
            .count();
        sorted.insert(sorted.len() - behind, item);
    }
    sorted
}

fn merge<T>(left: Vec<T>, right: Vec<T>, key: impl Fn(&T) -> &str) -> Vec<T> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut left, mut right) = (left.into_iter().peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let next = if less(key(b), key(a)) {
            right.next()
        } else {
            left.next()
        };
        merged.extend(next);
    }
    merged.extend(left);
    merged.extend(right);
    merged
}

fn less(a: &str, b: &str) -> bool {
    // The first difference of two letters decides, as in most keys.
    let mut pairs = a.bytes().zip(b.bytes());
    if let Some((x, y)) = pairs.find(|(x, y)| x != y)
        && x.is_ascii_alphabetic()
        && y.is_ascii_alphabetic()
    {
        return x < y;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let Some(at) = a.iter().zip(&b).position(|(x, y)| x != y) else {
        return a.len() < b.len();
    };
    let (Some(x), Some(y)) = (a.get(at), b.get(at)) else {
        return false;
    };
    match (x.is_alphabetic(), y.is_alphabetic()) {
        (true, true) => x < y,
        (true, false) => false,
        (false, true) => true,
        (false, false) => {
            // After a nonzero digit a zero is part of a number, not a leading zero.
            let before = a
                .get(..at)
                .unwrap_or_default()
                .iter()
                .rev()
                .take_while(|c| c.is_numeric());
            let inside = (*x == '0' || *y == '0') && before.into_iter().any(|c| *c != '0');
            let (x_number, x_end) = digits(&a, at, inside);
            let (y_number, y_end) = digits(&b, at, inside);
            (x_number, x_end, x) < (y_number, y_end, y)
        }
    }
}

/// Returns the number at `at`, and the end of its digits.
fn digits(text: &[char], at: usize, inside: bool) -> (i64, usize) {
    let digits = text
        .get(at..)
        .unwrap_or_default()
        .iter()
        .map_while(|c| c.to_digit(10));
    digits.fold((i64::from(inside), at), |(number, end), digit| {
        (number.wrapping_mul(10).wrapping_add(digit.into()), end + 1)
    })
}
