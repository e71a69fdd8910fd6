//! Random JSON values, and given ones with random changes.

use serde_json::{Map, Value};

use super::Random;

impl Random {
    /// Returns a value whose keys and strings are mostly `words`.
    pub fn json(&mut self, words: &[&str]) -> Value {
        self.json_within(words, 4)
    }

    fn json_within(&mut self, words: &[&str], depth: usize) -> Value {
        match self.below(if depth == 0 { 8 } else { 12 }) {
            0 => Value::Null,
            1 => self.flag().into(),
            2 => self.int().into(),
            3 => self.bits().into(),
            4 => self.float().into(),
            5..8 => self.text(words, 0..3).into(),
            8 | 9 => self
                .list(0..4, |random| random.json_within(words, depth - 1))
                .into(),
            _ => {
                let member = |random: &mut Self| {
                    let key = random.text(words, 1..3);
                    (key, random.json_within(words, depth - 1))
                };
                Value::Object(self.list(0..5, member).into_iter().collect::<Map<_, _>>())
            }
        }
    }

    /// Changes up to `times` places of `value`: another value, one from elsewhere in it, a member more or less.
    pub fn damage_json(&mut self, value: &mut Value, words: &[&str], times: usize) {
        for _ in 0..self.below(times + 1) {
            let new = if self.one_in(4) {
                let mut copy = None;
                at(value, &mut self.below(count(value)), &mut |place| {
                    copy = Some(place.clone());
                });
                copy.unwrap_or_default()
            } else {
                self.json(words)
            };
            let mut place = self.below(count(value));
            let (what, member, key) = (self.below(4), self.bits() as usize, self.text(words, 1..2));
            at(value, &mut place, &mut |place| match (what, place) {
                (0, Value::Object(map)) => drop(map.insert(key.clone(), new.clone())),
                (0, Value::Array(list)) => list.push(new.clone()),
                (1, Value::Object(map)) => {
                    let old = map.keys().nth(member % map.len().max(1)).cloned();
                    drop(old.and_then(|old| map.remove(&old)));
                }
                (1, Value::Array(list)) if !list.is_empty() => drop(list.remove(member % list.len())),
                (_, place) => *place = new.clone(),
            });
        }
    }
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(list) => list.iter().map(count).sum(),
        Value::Object(map) => map.values().map(count).sum(),
        _ => 0,
    }
}

/// Calls `change` with one of all places in `value`.
fn at(value: &mut Value, place: &mut usize, change: &mut dyn FnMut(&mut Value)) {
    if *place == 0 {
        *place = usize::MAX;
        return change(value);
    }
    *place -= 1;
    match value {
        Value::Array(list) => list.iter_mut().for_each(|item| at(item, place, change)),
        Value::Object(map) => map.values_mut().for_each(|member| at(member, place, change)),
        _ => {}
    }
}
