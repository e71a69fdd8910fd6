//! Arguments as Python binds them: by position or by name.

use minijinja::{
    Error, Value as Dynamic,
    value::{Kwargs, Rest, ValueOrKwargs},
};

use crate::functions::{fail, type_name};

/// What a filter or function is called with, beside its input.
pub(crate) type Args = Rest<ValueOrKwargs>;

/// Arguments in the order of their names.
pub(crate) struct Bound<const N: usize> {
    function: &'static str,
    names: [&'static str; N],
    values: [Option<Dynamic>; N],
}

/// Binds arguments to names.
pub(crate) fn bind<const N: usize>(
    function: &'static str,
    names: [&'static str; N],
    args: Args,
) -> Result<Bound<N>, Error> {
    let args = args.0.into_iter().map(ValueOrKwargs::into_value).collect();
    bind_values(function, names, args)
}

/// Binds arguments to names, for methods.
pub(crate) fn bind_values<const N: usize>(
    function: &'static str,
    names: [&'static str; N],
    args: Vec<Dynamic>,
) -> Result<Bound<N>, Error> {
    let mut bound = Bound {
        function,
        names,
        values: std::array::from_fn(|_| None),
    };
    let mut places = bound.values.iter_mut();
    for value in args {
        if value.is_kwargs() {
            bound.take_named(&Kwargs::try_from(value)?)?;
            break;
        }
        match places.next() {
            Some(place) => *place = Some(value),
            None => {
                return Err(fail(format!(
                    "TypeError: {function}() takes {N} arguments beside its value, not more"
                )));
            }
        }
    }
    Ok(bound)
}

impl<const N: usize> Bound<N> {
    fn take_named(&mut self, kwargs: &Kwargs) -> Result<(), Error> {
        for name in kwargs.args() {
            let place = self.names.iter().position(|known| *known == name);
            let place = place
                .and_then(|place| self.values.get_mut(place))
                .ok_or_else(|| {
                    fail(format!(
                        "TypeError: {}() got an unexpected keyword argument '{name}'",
                        self.function
                    ))
                })?;
            if place.is_some() {
                let function = self.function;
                return Err(fail(format!(
                    "TypeError: {function}() got multiple values for argument '{name}'"
                )));
            }
            *place = Some(kwargs.get(name)?);
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Option<&Dynamic> {
        let place = self.names.iter().position(|known| *known == name)?;
        self.values.get(place)?.as_ref()
    }

    /// A value; none when it wasn't given.
    pub(crate) fn get(&self, name: &str) -> Option<Dynamic> {
        self.find(name).cloned()
    }

    /// A value that must be given.
    pub(crate) fn required(&self, name: &str) -> Result<Dynamic, Error> {
        let missing = || {
            fail(format!(
                "TypeError: {}() missing 1 required positional argument: '{name}'",
                self.function
            ))
        };
        self.get(name).ok_or_else(missing)
    }

    /// Whether a value is true; undefined ones are errors.
    pub(crate) fn flag(&self, name: &str, default: bool) -> Result<bool, Error> {
        match self.find(name) {
            None => Ok(default),
            Some(value) => Ok(defined(value)?.is_true()),
        }
    }

    /// Text that must be given.
    pub(crate) fn text(&self, name: &str) -> Result<String, Error> {
        self.optional_text(name)?
            .ok_or_else(|| match self.required(name) {
                Err(error) => error,
                Ok(_) => fail(format!(
                    "TypeError: {}() needs text for '{name}', not None",
                    self.function
                )),
            })
    }

    /// Text; none for None too.
    pub(crate) fn optional_text(&self, name: &str) -> Result<Option<String>, Error> {
        match self.find(name) {
            None => Ok(None),
            Some(value) if value.is_none() => Ok(None),
            Some(value) => match defined(value)?.as_str() {
                Some(text) => Ok(Some(text.to_owned())),
                None => {
                    let found = type_name(value);
                    Err(fail(format!(
                        "TypeError: {}() needs text for '{name}', not {found}",
                        self.function
                    )))
                }
            },
        }
    }

    /// A whole number; none for None too.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>, Error> {
        match self.find(name) {
            None => Ok(None),
            Some(value) if value.is_none() => Ok(None),
            Some(value) => i64::try_from(defined(value)?.clone()).map(Some).map_err(|_| {
                let found = type_name(value);
                fail(format!(
                    "TypeError: {}() needs a whole number for '{name}', not {found}",
                    self.function
                ))
            }),
        }
    }

    /// A number of characters, within reason.
    pub(crate) fn size(&self, name: &str, default: usize) -> Result<usize, Error> {
        const LIMIT: i64 = 10_000;
        match self.number(name)? {
            None => Ok(default),
            Some(number) if number > LIMIT => Err(fail(format!(
                "ValueError: {}({name}={number}) is over the limit of {LIMIT}",
                self.function
            ))),
            Some(number) => Ok(usize::try_from(number).unwrap_or_default()),
        }
    }
}

/// The value, unless it is undefined: the error then names the variable.
pub(crate) fn defined(value: &Dynamic) -> Result<&Dynamic, Error> {
    // The engine remembers where an undefined value comes from, and tells it when the value can't be converted.
    if value.is_undefined() {
        Err(i64::try_from(value.clone()).err().unwrap_or_else(unknown))
    } else {
        Ok(value)
    }
}

fn unknown() -> Error {
    Error::from(minijinja::ErrorKind::UndefinedError)
}
