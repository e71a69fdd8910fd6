//! `.Files`: the files of a chart that are neither templates nor charts.

use std::{collections::BTreeMap, rc::Rc};

use base64::{Engine as _, engine::general_purpose::STANDARD};

use super::{File, glob::files_pattern};
use crate::{Dict, Object, Value};

/// The files that templates see, by their paths.
#[derive(Debug, Clone, Default)]
pub struct Files {
    files: BTreeMap<Rc<str>, Rc<[u8]>>,
}

impl Files {
    /// The files of a chart.
    #[must_use]
    pub fn new(files: &[File]) -> Self {
        let entry = |file: &File| (Rc::from(file.name.as_str()), Rc::from(file.data.as_ref()));
        Self {
            files: files.iter().map(entry).collect(),
        }
    }

    /// As a value of templates.
    #[must_use]
    pub fn into_value(self) -> Value {
        Value::Object(Rc::new(self))
    }

    fn bytes(&self, name: &str) -> Rc<[u8]> {
        self.files
            .get(name)
            .cloned()
            .unwrap_or_else(|| Rc::from([].as_slice()))
    }

    fn glob(&self, pattern: &str) -> Self {
        let Some(pattern) = files_pattern(pattern) else {
            return self.clone();
        };
        let matching = self.files.iter().filter(|(name, _)| pattern.is_match(name));
        Self {
            files: matching
                .map(|(name, data)| (name.clone(), data.clone()))
                .collect(),
        }
    }

    fn lines(&self, name: &str) -> Result<Value, String> {
        let Some(data) = self.files.get(name) else {
            return Ok(Value::Strings(Rc::default()));
        };
        if data.is_empty() {
            return Err("runtime error: index out of range [-1]".to_owned());
        }
        let text = String::from_utf8_lossy(data);
        let lines = text.strip_suffix('\n').unwrap_or(&text).split('\n');
        Ok(Value::Strings(Rc::new(lines.map(Value::string).collect())))
    }

    /// A map from the last parts of paths to texts, as YAML.
    fn as_yaml(&self, text: impl Fn(&[u8]) -> String) -> Value {
        let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let entry = |(path, data): (&Rc<str>, &Rc<[u8]>)| (base(path), yaml::Value::from(text(data)));
        let map: BTreeMap<String, yaml::Value> = self.files.iter().map(entry).collect();
        let text = yaml::print::goyaml(&yaml::Value::Map(map.into_iter().collect()));
        Value::string(text.strip_suffix('\n').unwrap_or(&text))
    }

    fn config(&self) -> Value {
        self.as_yaml(|data| String::from_utf8_lossy(data).into_owned())
    }

    fn secrets(&self) -> Value {
        self.as_yaml(|data| STANDARD.encode(data))
    }
}

impl Object for Files {
    fn type_name(&self) -> &str {
        "engine.files"
    }

    fn kind_name(&self) -> &'static str {
        "map"
    }

    fn field(&self, name: &str) -> Option<Value> {
        Some(match name {
            "AsConfig" => self.config(),
            "AsSecrets" => self.secrets(),
            _ => Value::Bytes(self.bytes(name)),
        })
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Option<Result<Value, String>> {
        match name {
            "AsConfig" | "AsSecrets" => {
                if !arguments.is_empty() {
                    let got = arguments.len();
                    return Some(Err(format!("wrong number of args for {name}: want 0 got {got}")));
                }
                return self.field(name).map(Ok);
            }
            "Get" | "GetBytes" | "Glob" | "Lines" => {}
            _ => return None,
        }
        let path = match arguments {
            [Value::String(path)] => path,
            [other] => {
                return Some(Err(format!(
                    "expected string; got {}",
                    crate::template::type_name(other)
                )));
            }
            others => {
                let got = others.len();
                return Some(Err(format!("wrong number of args for {name}: want 1 got {got}")));
            }
        };
        Some(match name {
            "Get" => Ok(Value::string(
                String::from_utf8_lossy(&self.bytes(path)).into_owned(),
            )),
            "GetBytes" => Ok(Value::Bytes(self.bytes(path))),
            "Glob" => Ok(self.glob(path).into_value()),
            _ => self.lines(path),
        })
    }

    fn as_dict(&self) -> Option<Dict> {
        let entry = |(name, data): (&Rc<str>, &Rc<[u8]>)| (name.clone(), Value::Bytes(data.clone()));
        match Value::dict(self.files.iter().map(entry)) {
            Value::Dict(map) => Some(map),
            _ => None,
        }
    }

    fn print(&self) -> String {
        let entry = |(name, data): (&Rc<str>, &Rc<[u8]>)| {
            let bytes: Vec<String> = data.iter().map(u8::to_string).collect();
            format!("{name}:[{}]", bytes.join(" "))
        };
        let entries: Vec<String> = self.files.iter().map(entry).collect();
        format!("map[{}]", entries.join(" "))
    }

    fn truth(&self) -> bool {
        !self.files.is_empty()
    }
}
